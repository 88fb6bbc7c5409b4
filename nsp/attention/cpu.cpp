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

// One sequence of a launch, and what its queries see.
struct Part {
  std::int64_t begin = 0;  // of its queries
  std::int64_t length = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_length = 0;
  bool causal = true;
  // (length, key_length), 0 where a row sees a column and -inf elsewhere; none where the kernel
  // knows without it.
  std::optional<at::Tensor> mask{};
};

void set_mask(const AttentionInputs& inputs, Part& part) {
  part.causal = inputs.mask == Mask::kCausal;
  const std::int64_t before = part.key_length - part.length;
  const bool windowed = inputs.window > 0 && part.length > inputs.window;
  if (!part.causal || (before == 0 && !windowed)) {
    return;
  }
  at::Tensor seen = at::ones({part.length, part.key_length}, inputs.q.options().dtype(at::kBool));
  seen.tril_(before);
  if (windowed) {
    seen.triu_(before + 1 - inputs.window);
  }
  part.mask = at::zeros(seen.sizes(), inputs.q.options())
                  .masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  part.causal = false;
}

template <class Run>
void for_each_part(const AttentionInputs& inputs, const Run& run) {
  const std::vector<std::int64_t>& lengths = inputs.sequences->lengths();
  const std::vector<std::int64_t>& key_lengths = inputs.key_sequences().lengths();
  Part part;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    part.length = lengths[i];
    part.key_length = key_lengths[i];
    part.mask.reset();
    set_mask(inputs, part);
    run(part);
    part.begin += part.length;
    part.key_begin += part.key_length;
  }
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
    for_each_part(in, [&](const Part& p) {
      const auto [attended, row_lse] =
          at::_scaled_dot_product_flash_attention_for_cpu(sequence(in.q, p.begin, p.length),
                                                          sequence(in.k, p.key_begin, p.key_length),
                                                          sequence(in.v, p.key_begin, p.key_length),
                                                          0.0,
                                                          p.causal,
                                                          p.mask,
                                                          in.scale);
      write(out, p.begin, p.length, attended);
      lse.narrow(0, p.begin, p.length).copy_(row_lse.squeeze(0).transpose(0, 1));
      ++forward_launches;
    });
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
    for_each_part(in, [&](const Part& p) {
      const auto queries = [&](const at::Tensor& x) { return sequence(x, p.begin, p.length); };
      const auto keys = [&](const at::Tensor& x) { return sequence(x, p.key_begin, p.key_length); };
      const at::Tensor part_lse = lse.narrow(0, p.begin, p.length).transpose(0, 1).unsqueeze(0);
      const auto [dq, dk, dv] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(queries(dense_dout),
                                                                   queries(in.q),
                                                                   keys(in.k),
                                                                   keys(in.v),
                                                                   queries(dense_out),
                                                                   part_lse,
                                                                   0.0,
                                                                   p.causal,
                                                                   p.mask,
                                                                   in.scale);
      write(gradients.dq, p.begin, p.length, dq);
      write(gradients.dk, p.key_begin, p.key_length, dk);
      write(gradients.dv, p.key_begin, p.key_length, dv);
      ++backward_launches;
    });
  }

  // Results of one sequence, before they are written to their rows. Not counted: ATen's blocks of
  // scores (about a megabyte a thread) and the tensor of a mask (queries x keys of a sequence).
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
