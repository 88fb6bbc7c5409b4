#include <utility>

#include <ATen/ops/empty.h>

#include "nsp/exec/backend.h"

namespace nsp {
namespace {

class Local final : public LevelBackend {
 public:
  Local(Block block, AttentionKernel& kernel)
      : LevelBackend(std::move(block)), kernel_(kernel), sequences_(this->block().lengths) {}

  bool keeps_rows() const override { return block().tokens > 0; }

  void prologue(ForwardState&) const override {}
  void compute(ForwardState& state) const override {
    const at::Tensor nothing = at::empty({0}, state.q.options());
    state.saved = {
        .qkv = nothing, .out = nothing, .lse = kernel_.forward(inputs(state), state.out)};
  }
  void epilogue(ForwardState&) const override {}
  void finish(ForwardState&) const override {}

  void prologue(BackwardState&) const override {}
  void compute(BackwardState& state) const override {
    if (keeps_rows()) {
      kernel_.backward(inputs(state),
                       state.out,
                       state.saved.lse,
                       state.dout,
                       {.dq = state.dq, .dk = state.dk, .dv = state.dv});
    }
  }
  void epilogue(BackwardState&) const override {}
  void finish(BackwardState&) const override {}

 private:
  template <class State>
  AttentionInputs inputs(const State& state) const {
    return {.q = state.q,
            .k = state.k,
            .v = state.v,
            .sequences = &sequences_,
            .scale = state.scale,
            .window = state.window};
  }

  AttentionKernel& kernel_;
  Ragged sequences_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_local(Block block, AttentionKernel& kernel) {
  return std::make_unique<Local>(std::move(block), kernel);
}

}  // namespace nsp
