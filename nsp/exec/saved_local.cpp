// Leaf sequences in a recomputed pass: saved rows of out come from the stash, one launch over the
// rest, and backward is the one launch over all that it always is.
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/stash.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

class SavedLocal final : public LevelBackend {
 public:
  SavedLocal(std::shared_ptr<const LevelBackend> whole, const Parts& parts, AttentionKernel& kernel)
      : LevelBackend(whole->block()),
        whole_(std::move(whole)),
        rest_(make_local(parts.rest, kernel)),
        saved_rows_(parts.saved_rows()),
        rest_rows_(parts.rest.tokens) {}

  bool keeps_rows() const override { return whole_->keeps_rows(); }

  void prologue(ForwardState&) const override {}
  void compute(ForwardState& state) const override {
    put_stashed(*state.stashed, state.out);
    for (at::Tensor* rows : {&state.q, &state.k, &state.v, &state.out}) {
      *rows = part(*rows, 0, saved_rows_, rest_rows_);
    }
    if (rest_rows_ > 0) {
      rest_->compute(state);
    } else {
      const at::Tensor nothing = at::empty({0}, state.q.options());
      state.saved = {.qkv = nothing, .out = nothing, .lse = nothing};
    }
  }
  void epilogue(ForwardState&) const override {}
  void finish(ForwardState&) const override {}

  void prologue(BackwardState&) const override {}
  void compute(BackwardState& state) const override {
    if (rest_rows_ == 0) {
      state.saved.lse = state.stashed->lse;
    } else if (saved_rows_ > 0) {
      state.saved.lse = at::cat({state.stashed->lse, state.saved.lse});
    }
    whole_->compute(state);
  }
  void epilogue(BackwardState&) const override {}
  void finish(BackwardState&) const override {}

 private:
  std::shared_ptr<const LevelBackend> whole_;
  std::unique_ptr<LevelBackend> rest_;
  std::int64_t saved_rows_;
  std::int64_t rest_rows_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_saved_local(std::shared_ptr<const LevelBackend> whole,
                                               const Parts& parts,
                                               AttentionKernel& kernel) {
  return std::make_unique<SavedLocal>(std::move(whole), parts, kernel);
}

}  // namespace nsp
