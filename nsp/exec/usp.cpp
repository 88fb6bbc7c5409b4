// Ulysses inside, ring or gather between (arXiv 2405.07719). Rank = ring index x u + inner index.
//
//   rows of the rank -- ulysses over the u inner ranks --> rows of the ring index, some heads
//        -- attention with the rows of other ring indices, same heads: ring or gather --> and back
//
// So ulysses runs a kernel here whose attention is the other backend's whole pass.
#include <utility>

#include "nsp/exec/backend.h"
#include "nsp/exec/ring_ranks.h"

namespace nsp {
namespace {

// A backend as a kernel: all phases at once. Its exchanges follow each other on all ranks alike.
class AcrossRing final : public AttentionKernel {
 public:
  AcrossRing(std::unique_ptr<LevelBackend> backend, AttentionKernel& kernel)
      : backend_(std::move(backend)), kernel_(kernel) {}

  std::string name() const override { return kernel_.name(); }

  at::Tensor forward(const AttentionInputs& inputs, const at::Tensor& out) override {
    ForwardState state{
        .q = inputs.q, .k = inputs.k, .v = inputs.v, .out = out, .scale = inputs.scale};
    run(state);
    return state.saved.lse;
  }

  void backward(const AttentionInputs& inputs,
                const at::Tensor& out,
                const at::Tensor& lse,
                const at::Tensor& dout,
                const AttentionGradients& gradients) override {
    BackwardState state;
    state.dout = dout;
    state.dq = gradients.dq;
    state.dk = gradients.dk;
    state.dv = gradients.dv;
    state.q = inputs.q;
    state.k = inputs.k;
    state.v = inputs.v;
    state.out = out;
    state.scale = inputs.scale;
    state.saved.lse = lse;
    run(state);
  }

  std::int64_t workspace_bytes(const LaunchShape& shape, bool backward) const override {
    return kernel_.workspace_bytes(shape, backward);
  }

 private:
  template <class State>
  void run(State& state) const {
    backend_->prologue(state);
    backend_->compute(state);
    backend_->epilogue(state);
    backend_->finish(state);
  }

  std::unique_ptr<LevelBackend> backend_;
  AttentionKernel& kernel_;
};

std::unique_ptr<LevelBackend> make_across(const Block& block,
                                          const HeadSplit& heads,
                                          Communicator& communicator,
                                          AttentionKernel& kernel) {
  const Ring ring = ring_of(block, heads);
  Block rows{.degree = block.pieces.ring,
             .level_degree = block.level_degree,
             .backend = block.backend == Backend::kUspRing ? Backend::kRing : Backend::kGather,
             .first_rank = ring.first_rank,
             .rank = block.rank,
             .tokens = zigzag_tokens(block.pieces, ring.index),
             .lengths = block.lengths,
             .pieces = block.pieces};
  return rows.backend == Backend::kRing
             ? make_ring(std::move(rows), ring, heads.kv, communicator, kernel)
             : make_gather(std::move(rows), ring, heads.kv, communicator, kernel);
}

class Usp final : public LevelBackend {
 public:
  Usp(Block block, const HeadSplit& heads, Communicator& communicator, AttentionKernel& kernel)
      : LevelBackend(std::move(block)),
        across_(make_across(this->block(), heads, communicator, kernel), kernel),
        inside_(make_ulysses(inner_block(this->block()), heads, communicator, across_)) {}

  bool keeps_rows() const override { return inside_->keeps_rows(); }

  void prologue(ForwardState& state) const override { inside_->prologue(state); }
  void compute(ForwardState& state) const override { inside_->compute(state); }
  void epilogue(ForwardState& state) const override { inside_->epilogue(state); }
  void finish(ForwardState& state) const override { inside_->finish(state); }

  void prologue(BackwardState& state) const override { inside_->prologue(state); }
  void compute(BackwardState& state) const override { inside_->compute(state); }
  void epilogue(BackwardState& state) const override { inside_->epilogue(state); }
  void finish(BackwardState& state) const override { inside_->finish(state); }

 private:
  AcrossRing across_;
  std::unique_ptr<LevelBackend> inside_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_usp(Block block,
                                       const HeadSplit& heads,
                                       Communicator& communicator,
                                       AttentionKernel& kernel) {
  return std::make_unique<Usp>(std::move(block), heads, communicator, kernel);
}

}  // namespace nsp
