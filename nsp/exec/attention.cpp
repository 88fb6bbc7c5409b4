// Three dispatcher operators: nsp::attention, and the forward and backward pass that it is made of
// when a gradient is wanted, so that a compiler finds both, opaque, in its graphs.
#include "nsp/exec/attention.h"

#include <array>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include "nsp/base/error.h"
#include "nsp/exec/attention_calls.h"

namespace nsp {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kAttentionOp = "nsp::attention";

template <class Schema>
auto find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Schema>();
}

// Checkpointing keeps saved tensors by itself, without autograd's check that nobody changed them.
std::vector<std::int64_t> versions(const variable_list& tensors) {
  std::vector<std::int64_t> result;
  for (const Tensor& tensor : tensors) {
    result.push_back(tensor._version());
  }
  return result;
}

void expect_unchanged(const variable_list& saved, const std::vector<std::int64_t>& versions) {
  constexpr std::array<const char*, 4> kNames = {"query", "key", "value", "output"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (saved[i]._version() > versions[i]) {
      throw Error(fmt::format(
          "nsp::attention: its {} has been modified by an inplace operation, but backward needs it "
          "as it was; change a copy",
          kNames[i]));
    }
  }
}

// The same values and edits without a history. An output that is saved holds its node, which holds
// it: when checkpointing ends a recomputed pass early, by an exception while tensors are saved,
// neither would ever be freed.
Tensor without_history(const Tensor& out) {
  Tensor alias = out.variable_data();
  torch::autograd::impl::set_version_counter(alias, torch::autograd::impl::version_counter(out));
  return alias;
}

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context,
                        const Tensor& q,
                        const Tensor& k,
                        const Tensor& v,
                        c10::SymInt handle,
                        c10::SymInt round,
                        double scale,
                        c10::SymInt window) {
    static const auto op = find_op<decltype(trace_forward)>("nsp::attention_forward");
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, kept] =
        op.call(q, k, v, std::move(handle), std::move(round), scale, std::move(window));
    // As many tensors when nothing is needed: checkpointing counts them.
    const Tensor nothing = needs_rows(kept) ? Tensor() : at::empty({0}, q.options());
    variable_list saved = needs_rows(kept)
                              ? variable_list{q, k, v, without_history(out), kept}
                              : variable_list{nothing, nothing, nothing, nothing, kept};
    if (made_by_forward(kept)) {
      context->saved_data["versions"] = versions(saved);
    }
    context->save_for_backward(std::move(saved));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op = find_op<decltype(trace_backward)>("nsp::attention_backward");
    if (at::GradMode::is_enabled()) {
      throw Error(
          "nsp::attention has no second derivative: call backward without create_graph=True");
    }
    const variable_list saved = context->get_saved_variables();
    if (const auto entry = context->saved_data.find("versions");
        entry != context->saved_data.end()) {
      expect_unchanged(saved, entry->second.toIntVector());
    }
    // An output that the loss does not use arrives as zeros: the exchanges are issued all the same.
    auto [dq, dk, dv] = op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4]);
    return {dq, dk, dv, {}, {}, {}, {}};
  }
};

Tensor differentiable_attention(const Tensor& q,
                                const Tensor& k,
                                const Tensor& v,
                                c10::SymInt handle,
                                c10::SymInt round,
                                double scale,
                                c10::SymInt window) {
  static const auto op = find_op<decltype(trace_plain)>(kAttentionOp);
  const bool differentiable =
      at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(q, k, v, std::move(handle), std::move(round), scale, std::move(window));
  }
  return Attention::apply(q, k, v, std::move(handle), std::move(round), scale, std::move(window));
}

void add_calls(torch::Library& library) {
  library.impl("attention", call_plain);
  library.impl("attention_forward", call_forward);
  library.impl("attention_backward", call_backward);
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
  static const auto op = find_op<decltype(trace_plain)>(kAttentionOp);
  return op.call(q, k, v, handle, round, scale, window);
}

TORCH_LIBRARY(nsp, library) {
  library.def(
      "attention(Tensor q, Tensor k, Tensor v, SymInt handle, SymInt round, float scale, "
      "SymInt window) -> Tensor");
  library.def(
      "attention_forward(Tensor q, Tensor k, Tensor v, SymInt handle, SymInt round, float scale, "
      "SymInt window) -> (Tensor out, Tensor kept)");
  library.def(
      "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor kept) -> "
      "(Tensor dq, Tensor dk, Tensor dv)");
}
TORCH_LIBRARY_IMPL(nsp, CPU, library) {
  add_calls(library);
}
TORCH_LIBRARY_IMPL(nsp, CUDA, library) {
  add_calls(library);
}
TORCH_LIBRARY_IMPL(nsp, Meta, library) {
  library.impl("attention", trace_plain);
  library.impl("attention_forward", trace_forward);
  library.impl("attention_backward", trace_backward);
}
TORCH_LIBRARY_IMPL(nsp, Autograd, library) {
  library.impl("attention", differentiable_attention);
}

}  // namespace nsp
