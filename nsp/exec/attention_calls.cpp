#include "nsp/exec/attention_calls.h"

#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "nsp/base/error.h"
#include "nsp/exec/pass.h"
#include "nsp/exec/program.h"
#include "nsp/exec/stash.h"

namespace nsp {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr std::size_t kLayerTensors = 4;  // q, k, v, out come first in what a pass keeps
constexpr std::size_t kBlockTensors = 3;  // of a Saved

struct Kept {
  Pass pass;
  bool rows = true;  // whether backward reads q, k, v and out
  Tensors blocks{};
};

void free_kept(void* kept) {
  delete static_cast<Kept*>(kept);
}

Tensor as_tensor(std::unique_ptr<Kept> kept, const Tensor& q) {
  return at::for_blob(nullptr, {0})
      .context(kept.release(), free_kept)
      .target_device(q.device())
      .options(q.options().dtype(at::kByte))
      .make_tensor();
}

// Null for a tensor that no forward pass made.
const Kept* kept_in(const Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().data_ptr().cast_context<Kept>(free_kept) : nullptr;
}

Pass make_pass(const Tensor& q,
               const Tensor& k,
               const Tensor& v,
               std::int64_t handle,
               std::int64_t round,
               double scale,
               std::int64_t window) {
  Pass pass{.program = find_program(handle), .round = round, .scale = scale, .window = window};
  check_inputs(pass, q, k, v);
  pass.stashed = take_stashed(pass);
  return pass;
}

// Inside a checkpointed region's first forward pass, what its marks name is stashed.
Tensor run(const Pass& pass, const Tensor& q, const Tensor& k, const Tensor& v, Tensors& kept) {
  Tensor out = run_forward(pass, q, k, v, kept);
  if (records(pass)) {
    std::vector<Saved> blocks;
    for (std::size_t i = kLayerTensors; i < kept.size(); i += kBlockTensors) {
      blocks.push_back({.qkv = kept[i], .out = kept[i + 1], .lse = kept[i + 2]});
    }
    stash_call(pass, out, blocks);
  }
  return out;
}

// Checkpointing compares the tensors that its two forward passes save: the first one says that it
// needs rows where the recomputed one does.
bool saves_rows(const Pass& pass, const Tensors& kept, const Tensor& q) {
  return kept[0].is_same(q) ||
         (records(pass) && reads_rows(*pass.program->round(pass.round).recomputed));
}

Tensor like(const Tensor& x) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

Tensor call_plain(const Tensor& q,
                  const Tensor& k,
                  const Tensor& v,
                  std::int64_t handle,
                  std::int64_t round,
                  double scale,
                  std::int64_t window) {
  const at::AutoDispatchBelowADInplaceOrView below;  // a graph's call may come from above
  Tensors kept;
  return run(make_pass(q, k, v, handle, round, scale, window), q, k, v, kept);
}

std::tuple<Tensor, Tensor> call_forward(const Tensor& q,
                                        const Tensor& k,
                                        const Tensor& v,
                                        std::int64_t handle,
                                        std::int64_t round,
                                        double scale,
                                        std::int64_t window) {
  const at::AutoDispatchBelowADInplaceOrView below;
  auto kept =
      std::make_unique<Kept>(Kept{.pass = make_pass(q, k, v, handle, round, scale, window)});
  Tensors all;
  Tensor out = run(kept->pass, q, k, v, all);
  kept->rows = saves_rows(kept->pass, all, q);
  kept->blocks.assign(all.begin() + kLayerTensors, all.end());
  return {std::move(out), as_tensor(std::move(kept), q)};
}

std::tuple<Tensor, Tensor, Tensor> call_backward(const Tensor& dout,
                                                 const Tensor& q,
                                                 const Tensor& k,
                                                 const Tensor& v,
                                                 const Tensor& out,
                                                 const Tensor& kept) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const Kept* const found = kept_in(kept);
  if (found == nullptr) {
    throw Error(
        "nsp::attention: what backward needs was copied between forward and backward; leave its "
        "empty tensor in place (hooks that offload saved tensors must skip small ones)");
  }
  Tensors all = {q, k, v, out};
  all.insert(all.end(), found->blocks.begin(), found->blocks.end());
  const Tensors gradients = run_backward(found->pass, all, dout);
  return {gradients[0], gradients[1], gradients[2]};
}

bool needs_rows(const Tensor& kept) {
  const Kept* const found = kept_in(kept);
  return found == nullptr || found->rows;
}

bool made_by_forward(const Tensor& kept) {
  return kept_in(kept) != nullptr;
}

Tensor trace_plain(
    const Tensor& q, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double, c10::SymInt) {
  return like(q);
}

std::tuple<Tensor, Tensor> trace_forward(
    const Tensor& q, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double, c10::SymInt) {
  return {like(q), at::empty({0}, q.options().dtype(at::kByte))};
}

std::tuple<Tensor, Tensor, Tensor> trace_backward(const Tensor&,
                                                  const Tensor& q,
                                                  const Tensor& k,
                                                  const Tensor& v,
                                                  const Tensor&,
                                                  const Tensor&) {
  return {like(q), like(k), like(v)};
}

}  // namespace nsp
