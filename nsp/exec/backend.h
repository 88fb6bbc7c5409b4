// How a block of a rank's row is run: the phases that the executor composes over the tree.
//
//   prologue   starts the communication in      forward: q, k, v      backward: dout
//   compute    waits for it, runs attention
//   epilogue   starts the communication out     forward: out          backward: dq, dk, dv
//   finish     waits for it, writes this rank's rows
//
// A backend is immutable: layers and threads share it. What belongs to one call is in its state.
//
// Where a plan marks placements to be saved, a second backend runs the recomputed forward pass and
// its backward: it takes the marked rows of `out` from the stash and attends to the rest.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "nsp/attention/attention.h"
#include "nsp/comm/communicator.h"
#include "nsp/exec/block.h"
#include "nsp/exec/heads.h"
#include "nsp/exec/parts.h"
#include "nsp/exec/ring_ranks.h"

namespace nsp {

// What backward needs beside the layer's own tensors, in the backend's own layout. All defined, so
// that every rank saves the same number of tensors (checkpointing counts them).
struct Saved {
  at::Tensor qkv;
  at::Tensor out;
  at::Tensor lse;
};

struct StashedBlock;  // nsp/exec/stash.h

struct ForwardState {
  at::Tensor q, k, v;  // this block's rows
  at::Tensor out;      // this block's rows, to be written
  double scale = 1;
  std::int64_t window = 0;                // of the kernel's launch; see AttentionInputs
  const StashedBlock* stashed = nullptr;  // in a recomputed pass
  Saved saved{};
  std::unique_ptr<Pending> pending{};
  at::Tensor kv{};  // this rank's keys and values, while they are still to be sent
};

struct BackwardState {
  at::Tensor dout;          // this block's rows
  at::Tensor dq, dk, dv;    // this block's rows, to be written
  at::Tensor q, k, v, out;  // this block's rows; undefined unless keeps_rows()
  double scale = 1;
  std::int64_t window = 0;
  const StashedBlock* stashed = nullptr;  // of a recomputed pass
  Saved saved;
  at::Tensor computed;  // between compute and epilogue; sums of dk and dv until they are written
  std::unique_ptr<Pending> pending;
  at::Tensor kv;  // as in ForwardState; gather: what returns of their gradients
};

class LevelBackend {
 public:
  explicit LevelBackend(Block block) : block_(std::move(block)) {}
  virtual ~LevelBackend() = default;

  const Block& block() const { return block_; }
  // Whether backward reads the layer's own q, k, v and out.
  virtual bool keeps_rows() const = 0;

  virtual void prologue(ForwardState& state) const = 0;
  virtual void compute(ForwardState& state) const = 0;
  virtual void epilogue(ForwardState& state) const = 0;
  virtual void finish(ForwardState& state) const = 0;

  virtual void prologue(BackwardState& state) const = 0;
  virtual void compute(BackwardState& state) const = 0;
  virtual void epilogue(BackwardState& state) const = 0;
  virtual void finish(BackwardState& state) const = 0;

 private:
  Block block_;
};

// Degree 1: one kernel call over the rank's own rows, no communication. The kernel outlives it.
std::unique_ptr<LevelBackend> make_local(Block block, AttentionKernel& kernel);

// All-to-all between rows of all heads and whole sequences of some heads: two exchanges forward,
// two backward (q, k, v are kept in head layout). Communicator and kernel outlive it.
std::unique_ptr<LevelBackend> make_ulysses(Block block,
                                           const HeadSplit& heads,
                                           Communicator& communicator,
                                           AttentionKernel& kernel);

// The same for a recomputed pass of `whole`, the backend of that block. Saved of a state then holds
// what backward needs of the parts that were not saved.
std::unique_ptr<LevelBackend> make_saved_local(std::shared_ptr<const LevelBackend> whole,
                                               const Parts& parts,
                                               AttentionKernel& kernel);

// Two exchanges forward if the level has anything to recompute, otherwise none. Backward has two:
// with the rows of dout travel the saved rows of out, and those of q, k and v unless they are kept.
std::unique_ptr<LevelBackend> make_saved_ulysses(std::shared_ptr<const LevelBackend> whole,
                                                 const Parts& parts,
                                                 const HeadSplit& heads,
                                                 Communicator& communicator,
                                                 AttentionKernel& kernel);

// The zigzag backends take no window. Keys and values of the ring's other indices come in r - 1
// hops (ring) or in one exchange (gather), forward and again backward, and their gradients return
// as often: exchanges_of. `kv_heads`: of k and v. Communicator and kernel outlive them.
std::unique_ptr<LevelBackend> make_ring(Block block,
                                        const Ring& ring,
                                        std::int64_t kv_heads,
                                        Communicator& communicator,
                                        AttentionKernel& kernel);
std::unique_ptr<LevelBackend> make_gather(Block block,
                                          const Ring& ring,
                                          std::int64_t kv_heads,
                                          Communicator& communicator,
                                          AttentionKernel& kernel);

// Ulysses over the block's inner ranks, around ring or gather among ranks of equal inner index.
// `heads`: split over the inner ranks.
std::unique_ptr<LevelBackend> make_usp(Block block,
                                       const HeadSplit& heads,
                                       Communicator& communicator,
                                       AttentionKernel& kernel);

// The one that the block names, for all of a model's heads. Throws BadInput where it splits heads
// by a degree that does not divide them.
std::unique_ptr<LevelBackend> make_backend(Block block,
                                           const Heads& heads,
                                           Communicator& communicator,
                                           AttentionKernel& kernel);

}  // namespace nsp
