#include "nsp/exec/attention.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "nsp/base/error.h"
#include "nsp/exec/pass.h"
#include "nsp/exec/program.h"

namespace nsp {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kAttentionOp = "nsp::attention";
constexpr const char* kForwardOp = "nsp::attention_forward";
constexpr const char* kBackwardOp = "nsp::attention_backward";

constexpr std::ptrdiff_t kLayerTensors = 4;  // q, k, v, out come first in what a pass keeps

// What backward needs beside q, k, v and out; it keeps the program alive after its handle is
// released. It travels as an empty tensor whose storage owns it, so an autograd graph, a compiler
// and checkpointing keep it and drop it like any other saved tensor.
struct Kept {
  Pass pass;
  bool rows = true;  // whether backward reads q, k, v and out
  variable_list blocks{};
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

// Null for a tensor that the forward pass did not make: a copy, or one of a compiler's trace.
Kept* kept_in(const Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().data_ptr().cast_context<Kept>(free_kept) : nullptr;
}

Pass make_pass(const Tensor& q,
               const Tensor& k,
               const Tensor& v,
               std::int64_t schedule,
               std::int64_t round,
               double scale) {
  Pass pass{.program = find_program(schedule), .round = round, .scale = scale};
  check_inputs(pass, q, k, v);
  return pass;
}

Tensor attention_plain(const Tensor& q,
                       const Tensor& k,
                       const Tensor& v,
                       std::int64_t schedule,
                       std::int64_t round,
                       double scale) {
  variable_list kept;
  return run_forward(make_pass(q, k, v, schedule, round, scale), q, k, v, kept);
}

std::tuple<Tensor, Tensor> attention_forward(const Tensor& q,
                                             const Tensor& k,
                                             const Tensor& v,
                                             std::int64_t schedule,
                                             std::int64_t round,
                                             double scale) {
  auto kept = std::make_unique<Kept>(Kept{.pass = make_pass(q, k, v, schedule, round, scale)});
  variable_list all;
  Tensor out = run_forward(kept->pass, q, k, v, all);
  kept->rows = all[0].is_same(q);
  kept->blocks.assign(all.begin() + kLayerTensors, all.end());
  return {std::move(out), as_tensor(std::move(kept), q)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout,
                                                      const Tensor& q,
                                                      const Tensor& k,
                                                      const Tensor& v,
                                                      const Tensor& out,
                                                      const Tensor& kept_tensor) {
  const Kept* const kept = kept_in(kept_tensor);
  if (kept == nullptr) {
    throw Error(
        "nsp::attention: what backward needs was copied between forward and backward; leave its "
        "saved tensors in place (no offloading of saved tensors around the attention)");
  }
  variable_list all = {q, k, v, out};
  all.insert(all.end(), kept->blocks.begin(), kept->blocks.end());
  variable_list gradients = run_backward(kept->pass, all, dout);
  return {gradients[0], gradients[1], gradients[2]};
}

// Shapes for a compiler's trace. Schedule and round stay symbols there: one graph serves all plans.
Tensor attention_meta(const Tensor& q,
                      const Tensor&,
                      const Tensor&,
                      c10::SymInt,
                      c10::SymInt,
                      double) {
  return at::empty_symint(q.sym_sizes(), q.options());
}

std::tuple<Tensor, Tensor> attention_forward_meta(const Tensor& q,
                                                  const Tensor&,
                                                  const Tensor&,
                                                  c10::SymInt,
                                                  c10::SymInt,
                                                  double) {
  return {at::empty_symint(q.sym_sizes(), q.options()),
          at::empty({0}, q.options().dtype(at::kByte))};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward_meta(const Tensor& dout,
                                                           const Tensor& q,
                                                           const Tensor& k,
                                                           const Tensor& v,
                                                           const Tensor&,
                                                           const Tensor&) {
  const auto like = [&](const Tensor& x) {
    return at::empty_symint(x.sym_sizes(), dout.options());
  };
  return {like(q), like(k), like(v)};
}

template <class Schema>
auto find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Schema>();
}

template <class Result>
using CallWithPlan = Result(const Tensor&,
                            const Tensor&,
                            const Tensor&,
                            c10::SymInt,
                            c10::SymInt,
                            double);

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context,
                        const Tensor& q,
                        const Tensor& k,
                        const Tensor& v,
                        c10::SymInt schedule,
                        c10::SymInt round,
                        double scale) {
    static const auto op = find_op<CallWithPlan<std::tuple<Tensor, Tensor>>>(kForwardOp);
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, kept_tensor] = op.call(q, k, v, std::move(schedule), std::move(round), scale);
    const Kept* const kept = kept_in(kept_tensor);
    if (kept != nullptr && !kept->rows) {
      const Tensor nothing = at::empty({0}, q.options());
      context->save_for_backward({nothing, nothing, nothing, nothing, kept_tensor});
    } else {
      context->save_for_backward({q, k, v, out, kept_tensor});
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    using Schema = std::tuple<Tensor, Tensor, Tensor>(const Tensor&,
                                                      const Tensor&,
                                                      const Tensor&,
                                                      const Tensor&,
                                                      const Tensor&,
                                                      const Tensor&);
    static const auto op = find_op<Schema>(kBackwardOp);
    if (at::GradMode::is_enabled()) {
      throw Error(
          "nsp::attention has no second derivative: call backward without create_graph=True");
    }
    const variable_list saved = context->get_saved_variables();
    // An output that the loss does not use arrives as zeros: the exchanges are issued all the same.
    auto [dq, dk, dv] = op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4]);
    return {dq, dk, dv, {}, {}, {}};
  }
};

Tensor attention_autograd(const Tensor& q,
                          const Tensor& k,
                          const Tensor& v,
                          c10::SymInt schedule,
                          c10::SymInt round,
                          double scale) {
  static const auto op = find_op<CallWithPlan<Tensor>>(kAttentionOp);
  const bool differentiable =
      at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(q, k, v, std::move(schedule), std::move(round), scale);
  }
  return Attention::apply(q, k, v, std::move(schedule), std::move(round), scale);
}

}  // namespace

std::string_view attention_op() {
  return kAttentionOp;
}

Tensor attention(const Tensor& q,
                 const Tensor& k,
                 const Tensor& v,
                 std::int64_t schedule,
                 std::int64_t round,
                 double scale) {
  static const auto op = find_op<CallWithPlan<Tensor>>(kAttentionOp);
  return op.call(q, k, v, schedule, round, scale);
}

TORCH_LIBRARY(nsp, library) {
  library.def(
      "attention(Tensor q, Tensor k, Tensor v, SymInt schedule, SymInt round, float scale) -> "
      "Tensor");
  library.def(
      "attention_forward(Tensor q, Tensor k, Tensor v, SymInt schedule, SymInt round, float scale) "
      "-> (Tensor out, Tensor kept)");
  library.def(
      "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor kept) -> "
      "(Tensor dq, Tensor dk, Tensor dv)");
}
void add_kernels(torch::Library& library) {
  library.impl("attention", attention_plain);
  library.impl("attention_forward", attention_forward);
  library.impl("attention_backward", attention_backward);
}
TORCH_LIBRARY_IMPL(nsp, CPU, library) {
  add_kernels(library);
}
TORCH_LIBRARY_IMPL(nsp, CUDA, library) {
  add_kernels(library);
}
TORCH_LIBRARY_IMPL(nsp, Meta, library) {
  library.impl("attention", attention_meta);
  library.impl("attention_forward", attention_forward_meta);
  library.impl("attention_backward", attention_backward_meta);
}
TORCH_LIBRARY_IMPL(nsp, Autograd, library) {
  library.impl("attention", attention_autograd);
}

}  // namespace nsp
