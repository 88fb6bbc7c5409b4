// What a checkpointed layer keeps of its attention between its forward pass and the recomputed one:
// the outputs of placements that the plan marks.
//
// Checkpointing makes one Stash a call of a layer and enters it around both passes of it, on
// whatever thread each runs. The operator finds the stash that its thread has entered last; nothing
// is shared by models or by threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/exec/pass.h"

namespace nsp {

// Of one block, for the rows of its saved placements; all defined, empty where nothing is kept.
struct StashedBlock {
  at::Tensor out;  // this rank's rows that are not offloaded, (rows, heads, head_dim)
  at::Tensor lse;  // of the heads that this rank works on, in the kernel's layout, whole sequences
  at::Tensor qkv;  // of save_qkv alone: as Saved::qkv
};

// One forward pass of the operator. Its bytes count in its World while it lives.
class StashedCall {
 public:
  // `offloaded`: rows of out of all blocks in turn; null where there are none.
  StashedCall(Pass pass,
              std::vector<StashedBlock> blocks,
              std::shared_ptr<OffloadedRows> offloaded);
  ~StashedCall();
  StashedCall(const StashedCall&) = delete;
  StashedCall& operator=(const StashedCall&) = delete;
  StashedCall(StashedCall&&) = delete;
  StashedCall& operator=(StashedCall&&) = delete;

  const Pass& pass() const { return pass_; }
  const std::vector<StashedBlock>& blocks() const { return blocks_; }
  std::int64_t bytes() const { return bytes_; }  // without offloaded ones
  const std::shared_ptr<OffloadedRows>& offloaded() const { return offloaded_; }

 private:
  Pass pass_;  // keeps the world, which outlives what was offloaded
  std::vector<StashedBlock> blocks_;
  std::shared_ptr<OffloadedRows> offloaded_;
  std::int64_t bytes_ = 0;
};

// The calls of one checkpointed region, in order. Thread-safe. What it holds is dropped with it:
// with the last of the autograd graph that needs the region's recomputation.
class Stash {
 public:
  void clear();
  void add(std::shared_ptr<const StashedCall> call);
  // Null when there is no such call.
  std::shared_ptr<const StashedCall> at(std::size_t index) const;
  std::int64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const StashedCall>> calls_;
};

enum class StashUse : std::uint8_t { kRecord, kReplay };

// Enters a stash on this thread, until leave_stash on the same thread. Recording begins empty;
// replaying begins with the first call, and may be done again (retain_graph).
void enter_stash(std::shared_ptr<Stash> stash, StashUse use);
void leave_stash();

// The operator's side; all of it does nothing for a round without saved placements.
//
// Whether this thread records.
bool records(const Pass& pass);
// Copies what the round's marks name out of a forward pass of `pass`.
void stash_call(const Pass& pass, const at::Tensor& out, const std::vector<Saved>& blocks);
// Writes the stashed rows of a block to the head of its out.
void put_stashed(const StashedBlock& block, const at::Tensor& out);
// Writes the offloaded rows of a call to out, the whole row of the rank.
void put_offloaded(const StashedCall& call, const at::Tensor& out);
// The counterpart of this call in the pass that was recorded; null unless this thread replays.
// Throws Error when that was another call.
std::shared_ptr<const StashedCall> take_stashed(const Pass& pass);

}  // namespace nsp
