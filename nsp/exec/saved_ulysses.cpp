// An ulysses level in a recomputed pass. Forward again: saved rows of out come from the stash, the
// rest goes the way of ulysses, unless there is none in the whole level. Backward: operands by one
// exchange (saved_operands.h), one launch over the whole level; its gradients go back as ulysses
// sends them.
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "nsp/exec/saved_operands.h"
#include "nsp/exec/stash.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;

class SavedUlysses final : public LevelBackend {
 public:
  SavedUlysses(std::shared_ptr<const LevelBackend> whole,
               const Parts& parts,
               const HeadSplit& heads,
               Communicator& communicator,
               AttentionKernel& kernel)
      : LevelBackend(whole->block()),
        whole_(std::move(whole)),
        rest_(make_ulysses(parts.rest, heads, communicator, kernel)),
        redo_(parts.any_rest),
        reads_rows_(parts.save.tokens > 0),
        saved_rows_(parts.saved_rows()),
        saved_node_rows_(node_rows(parts.save_qkv) + node_rows(parts.save)),
        heads_(heads),
        communicator_(communicator),
        kernel_(kernel),
        sequences_(block().lengths),
        operands_(parts, heads) {}

  bool keeps_rows() const override { return reads_rows_; }

  void prologue(ForwardState& state) const override {
    if (redo_) {
      for (Tensor* rows : {&state.q, &state.k, &state.v}) {
        *rows = rest_of(*rows);
      }
      rest_->prologue(state);
    }
  }

  void compute(ForwardState& state) const override {
    put_stashed(*state.stashed, state.out);
    state.out = rest_of(state.out);
    if (redo_) {
      rest_->compute(state);
    } else {
      const Tensor nothing = at::empty({0}, state.out.options());
      state.saved = {.qkv = nothing, .out = nothing, .lse = nothing};
    }
  }

  void epilogue(ForwardState& state) const override {
    if (redo_) {
      rest_->epilogue(state);
    }
  }

  void finish(ForwardState& state) const override {
    if (redo_) {
      rest_->finish(state);
    }
  }

  void prologue(BackwardState& state) const override {
    state.pending = communicator_.exchange(operands_.pack(state),
                                           operands_.send_counts(communicator_.size()),
                                           operands_.receive_counts(communicator_.size()),
                                           {"backward prologue", block().degree});
  }

  void compute(BackwardState& state) const override {
    const Operands operands = operands_.merge(state, state.pending->wait());
    state.computed = at::empty(operands.qkv.sizes(), operands.qkv.options());
    const AttentionInputs inputs{.q = query_part(operands.qkv),
                                 .k = kv_part(operands.qkv, 0),
                                 .v = kv_part(operands.qkv, 1),
                                 .sequences = &sequences_,
                                 .scale = state.scale,
                                 .window = state.window};
    const AttentionGradients gradients{.dq = query_part(state.computed),
                                       .dk = kv_part(state.computed, 0),
                                       .dv = kv_part(state.computed, 1)};
    kernel_.backward(inputs, operands.out, log_sum_exp(state), operands.dout, gradients);
  }

  void epilogue(BackwardState& state) const override { whole_->epilogue(state); }
  void finish(BackwardState& state) const override { whole_->finish(state); }

 private:
  Tensor rest_of(const Tensor& rows) const {
    return part(rows, 0, saved_rows_, block().tokens - saved_rows_);
  }
  Tensor query_part(const Tensor& rows) const { return part(rows, 1, 0, heads_.query); }
  Tensor kv_part(const Tensor& rows, std::int64_t index) const {
    return part(rows, 1, heads_.query + index * heads_.kv, heads_.kv);
  }

  Tensor log_sum_exp(const BackwardState& state) const {
    if (rest_->block().lengths.empty()) {
      return state.stashed->lse;
    }
    return saved_node_rows_ == 0 ? state.saved.lse : at::cat({state.stashed->lse, state.saved.lse});
  }

  std::shared_ptr<const LevelBackend> whole_;
  std::unique_ptr<LevelBackend> rest_;
  bool redo_;  // whether the level has anything to recompute, on any rank
  bool reads_rows_;
  std::int64_t saved_rows_;       // of this rank
  std::int64_t saved_node_rows_;  // of the node
  HeadSplit heads_;
  Communicator& communicator_;
  AttentionKernel& kernel_;
  Ragged sequences_;
  SavedOperands operands_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_saved_ulysses(std::shared_ptr<const LevelBackend> whole,
                                                 const Parts& parts,
                                                 const HeadSplit& heads,
                                                 Communicator& communicator,
                                                 AttentionKernel& kernel) {
  return std::make_unique<SavedUlysses>(std::move(whole), parts, heads, communicator, kernel);
}

}  // namespace nsp
