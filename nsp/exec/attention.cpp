#include "nsp/exec/attention.h"

#include <string>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
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

// The autograd node holds it, so the program outlives a released handle.
struct Call : torch::CustomClassHolder {
  explicit Call(Pass value) : pass(std::move(value)) {}
  Pass pass;
};

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context,
                        const Tensor& q,
                        const Tensor& k,
                        const Tensor& v,
                        c10::intrusive_ptr<Call> call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list kept;
    Tensor out = run_forward(call->pass, q, k, v, kept);
    context->save_for_backward(std::move(kept));
    context->saved_data["call"] = c10::IValue::make_capsule(std::move(call));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw Error(
          "nsp::attention has no second derivative: call backward without create_graph=True");
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    // An output that the loss does not use arrives as zeros: the exchanges are issued all the same.
    variable_list result = run_backward(call->pass, context->get_saved_variables(), gradients[0]);
    result.emplace_back();
    return result;
  }
};

Pass make_pass(const Tensor& q,
               const Tensor& k,
               const Tensor& v,
               std::int64_t handle,
               std::int64_t round,
               double scale,
               std::int64_t window) {
  Pass pass{.program = find_program(handle), .round = round, .scale = scale, .window = window};
  check_inputs(pass, q, k, v);
  return pass;
}

Tensor attention_plain(const Tensor& q,
                       const Tensor& k,
                       const Tensor& v,
                       std::int64_t handle,
                       std::int64_t round,
                       double scale,
                       std::int64_t window) {
  variable_list kept;
  return run_forward(make_pass(q, k, v, handle, round, scale, window), q, k, v, kept);
}

Tensor attention_autograd(const Tensor& q,
                          const Tensor& k,
                          const Tensor& v,
                          std::int64_t handle,
                          std::int64_t round,
                          double scale,
                          std::int64_t window) {
  const bool differentiable =
      at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return attention_plain(q, k, v, handle, round, scale, window);
  }
  return Attention::apply(
      q, k, v, c10::make_intrusive<Call>(make_pass(q, k, v, handle, round, scale, window)));
}

}  // namespace

std::string_view attention_op() {
  return kAttentionOp;
}

Tensor attention(const Tensor& q,
                 const Tensor& k,
                 const Tensor& v,
                 std::int64_t handle,
                 std::int64_t round,
                 double scale,
                 std::int64_t window) {
  using Schema = Tensor(const Tensor&,
                        const Tensor&,
                        const Tensor&,
                        std::int64_t,
                        std::int64_t,
                        double,
                        std::int64_t);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kAttentionOp, "").typed<Schema>();
  return op.call(q, k, v, handle, round, scale, window);
}

TORCH_LIBRARY(nsp, library) {
  library.def(
      "attention(Tensor q, Tensor k, Tensor v, int handle, int round, float scale, int window)"
      " -> Tensor");
}
TORCH_LIBRARY_IMPL(nsp, CPU, library) {
  library.impl("attention", attention_plain);
}
TORCH_LIBRARY_IMPL(nsp, CUDA, library) {
  library.impl("attention", attention_plain);
}
TORCH_LIBRARY_IMPL(nsp, Autograd, library) {
  library.impl("attention", attention_autograd);
}

}  // namespace nsp
