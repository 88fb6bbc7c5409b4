// ATen's FlashAttention-2 on CUDA tensors: portable (Ampere and newer), sliding window; its
// backward is deterministic where torch.use_deterministic_algorithms(True) holds (a switch of the
// process).
//
// ATen's log-sum-exp lies by head, (heads, T): it leaves and comes back as a view of its transpose.
// A causal mask over more keys than queries is aligned at the end, as ours.
#include <optional>

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "nsp/attention/attention.h"
#include "nsp/attention/ragged.h"

namespace nsp {
namespace {

at::Tensor dense_head_dim(const at::Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

class FlashAttention final : public AttentionKernel {
 public:
  std::string name() const override { return "flash"; }
  at::Tensor forward(const AttentionInputs& inputs, const at::Tensor& out) override {
    const Ragged& sequences = *inputs.sequences;
    if (sequences.count() == 0) {
      return at::empty({0, inputs.q.size(1)}, inputs.q.options().dtype(at::kFloat));
    }
    const Ragged& keys = inputs.key_sequences();
    const auto [attended, lse, rng_state, unused, mask] =
        at::_flash_attention_forward(dense_head_dim(inputs.q),
                                     dense_head_dim(inputs.k),
                                     dense_head_dim(inputs.v),
                                     boundaries(inputs, sequences),
                                     boundaries(inputs, keys),
                                     sequences.longest(),
                                     keys.longest(),
                                     0.0,
                                     inputs.mask == Mask::kCausal,
                                     false,
                                     inputs.scale,
                                     window_left(inputs),
                                     window_right(inputs));
    out.copy_(attended);
    ++forward_launches;
    return lse.transpose(0, 1);
  }

  void backward(const AttentionInputs& inputs,
                const at::Tensor& out,
                const at::Tensor& lse,
                const at::Tensor& dout,
                const AttentionGradients& gradients) override {
    const Ragged& sequences = *inputs.sequences;
    if (sequences.count() == 0) {
      return;
    }
    const Ragged& keys = inputs.key_sequences();
    // No dropout: the generator's state is not read, but must be there.
    const at::Tensor rng_state =
        at::zeros({2}, inputs.q.options().dtype(at::kLong).device(at::kCPU));
    const auto [dq, dk, dv] = at::_flash_attention_backward(dense_head_dim(dout),
                                                            dense_head_dim(inputs.q),
                                                            dense_head_dim(inputs.k),
                                                            dense_head_dim(inputs.v),
                                                            dense_head_dim(out),
                                                            lse.transpose(0, 1).contiguous(),
                                                            boundaries(inputs, sequences),
                                                            boundaries(inputs, keys),
                                                            sequences.longest(),
                                                            keys.longest(),
                                                            0.0,
                                                            inputs.mask == Mask::kCausal,
                                                            rng_state,
                                                            rng_state,
                                                            inputs.scale,
                                                            window_left(inputs),
                                                            window_right(inputs));
    gradients.dq.copy_(dq);
    gradients.dk.copy_(dk);
    gradients.dv.copy_(dv);
    ++backward_launches;
  }

  // Forward: out before it is copied. Backward: dq, and dk and dv for every query head where heads
  // are grouped; FlashAttention-2 sums dq and the rows of dout * out in float32, each sequence with
  // up to a block of 128 rows more.
  std::int64_t workspace_bytes(const LaunchShape& shape, bool backward) const override {
    const std::int64_t row = shape.head_dim * shape.value_bytes;
    if (!backward) {
      return shape.tokens * shape.heads * row;
    }
    const std::int64_t grouped = shape.kv_heads < shape.heads ? 2 * shape.heads : 0;
    const std::int64_t rows = shape.tokens + 128 * shape.sequences;
    return (shape.tokens * shape.heads + shape.keys() * (2 * shape.kv_heads + grouped)) * row +
           rows * shape.heads * (shape.head_dim + 1) * 4;
  }

 private:
  static at::Tensor boundaries(const AttentionInputs& inputs, const Ragged& sequences) {
    return sequences.offsets_on(inputs.q.device(), at::kInt, sequences.count(), 1);
  }
  // Tokens to the left that a token sees besides itself.
  static std::optional<std::int64_t> window_left(const AttentionInputs& inputs) {
    return inputs.window > 0 ? std::optional(inputs.window - 1) : std::nullopt;
  }
  static std::optional<std::int64_t> window_right(const AttentionInputs& inputs) {
    return inputs.window > 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  }
};

}  // namespace

std::unique_ptr<AttentionKernel> make_flash_attention() {
  return std::make_unique<FlashAttention>();
}

}  // namespace nsp
