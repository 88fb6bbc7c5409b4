#include <limits>
#include <optional>
#include <string>

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "nsp/attention/attention.h"
#include "nsp/base/error.h"

namespace nsp {
namespace {

// The kernel steps through rows by stride but takes head_dim as dense; an expanded gradient
// (out.sum() has strides 0) is not.
at::Tensor dense_rows(const at::Tensor& x) {
  const std::int64_t head_dim = x.size(2);
  const bool dense = x.stride(2) == 1 && x.stride(0) >= head_dim && x.stride(1) >= head_dim;
  return dense ? x : x.contiguous();
}

// Rows [begin, begin + length) as the (1, heads, length, head_dim) view the kernel takes, and back.
at::Tensor sequence(const at::Tensor& x, std::int64_t begin, std::int64_t length) {
  return x.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}
void write(const at::Tensor& x, std::int64_t begin, std::int64_t length, const at::Tensor& value) {
  x.narrow(0, begin, length).copy_(value.squeeze(0).transpose(0, 1));
}

// (length, length), 0 where row i sees column j and -inf elsewhere; none where a row sees all
// before it.
std::optional<at::Tensor> window_mask(const AttentionInputs& inputs, std::int64_t length) {
  if (inputs.window == 0 || length <= inputs.window) {
    return std::nullopt;
  }
  const at::Tensor seen = at::ones({length, length}, inputs.q.options().dtype(at::kBool))
                              .tril()
                              .triu(1 - inputs.window);
  return at::zeros({length, length}, inputs.q.options())
      .masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

AttentionInputs checked(const AttentionInputs& inputs) {
  if (!inputs.q.is_cpu()) {
    bad_input("device", inputs.q.device().str(), "this attention kernel takes CPU tensors");
  }
  AttentionInputs result = inputs;
  result.q = dense_rows(inputs.q);
  result.k = dense_rows(inputs.k);
  result.v = dense_rows(inputs.v);
  return result;
}

// One call a sequence: the kernel has no ragged form, and a length of 0 kills the process (SIGFPE).
class CpuAttention final : public AttentionKernel {
 public:
  std::string name() const override { return "cpu"; }
  at::Tensor forward(const AttentionInputs& inputs, const at::Tensor& out) override {
    const AttentionInputs in = checked(inputs);
    const auto lse_type = in.q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor lse = at::empty({in.q.size(0), in.q.size(1)}, in.q.options().dtype(lse_type));
    std::int64_t begin = 0;
    for (const std::int64_t length : in.sequences->lengths()) {
      const auto part = [&](const at::Tensor& x) { return sequence(x, begin, length); };
      const std::optional<at::Tensor> mask = window_mask(in, length);
      const auto [attended, row_lse] = at::_scaled_dot_product_flash_attention_for_cpu(
          part(in.q), part(in.k), part(in.v), 0.0, !mask, mask, in.scale);
      write(out, begin, length, attended);
      lse.narrow(0, begin, length).copy_(row_lse.squeeze(0).transpose(0, 1));
      ++forward_launches;
      begin += length;
    }
    return lse;
  }

  void backward(const AttentionInputs& inputs,
                const at::Tensor& out,
                const at::Tensor& lse,
                const at::Tensor& dout,
                const AttentionGradients& gradients) override {
    const AttentionInputs in = checked(inputs);
    const at::Tensor dense_out = dense_rows(out);
    const at::Tensor dense_dout = dense_rows(dout);
    std::int64_t begin = 0;
    for (const std::int64_t length : in.sequences->lengths()) {
      const auto part = [&](const at::Tensor& x) { return sequence(x, begin, length); };
      const std::optional<at::Tensor> mask = window_mask(in, length);
      const at::Tensor part_lse = lse.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
      const auto [dq, dk, dv] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(part(dense_dout),
                                                                   part(in.q),
                                                                   part(in.k),
                                                                   part(in.v),
                                                                   part(dense_out),
                                                                   part_lse,
                                                                   0.0,
                                                                   !mask,
                                                                   mask,
                                                                   in.scale);
      write(gradients.dq, begin, length, dq);
      write(gradients.dk, begin, length, dk);
      write(gradients.dv, begin, length, dv);
      ++backward_launches;
      begin += length;
    }
  }

  // Results of one sequence, before they are written to their rows. Not counted: ATen's blocks of
  // scores (about a megabyte a thread) and the mask of a sliding window (longest x longest).
  std::int64_t workspace_bytes(const LaunchShape& shape, bool backward) const override {
    const std::int64_t heads = shape.heads + (backward ? 2 * shape.kv_heads : 0);
    return shape.longest * heads * shape.head_dim * shape.value_bytes;
  }
};

}  // namespace

std::unique_ptr<AttentionKernel> make_cpu_attention() {
  return std::make_unique<CpuAttention>();
}

}  // namespace nsp
