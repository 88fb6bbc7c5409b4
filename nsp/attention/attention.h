// Attention over ragged sequences that lie one after another along the token dimension.
//
// Shapes: q, out, dout, dq (T, heads, head_dim); k, v, dk, dv (K, kv_heads, head_dim); lse
// (T, heads), any strides. T and K are the sums of the lengths of queries and keys: the same
// sequences, or chunks of queries each with keys of its own. Query head h reads KV head h / (heads
// / kv_heads). Tensors may be strided views; values outside the sequences do not exist (no
// padding).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "nsp/attention/ragged.h"

namespace nsp {

// Which of a sequence's keys its queries see.
enum class Mask : std::uint8_t {
  kCausal,  // the last query all of them, each query before it one less
  kFull,    // all
};

struct AttentionInputs {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
  const Ragged* sequences = nullptr;  // not owned
  double scale = 1;                   // of q k^T, before softmax
  std::int64_t window = 0;            // tokens a token sees, itself included; 0: all before it
  // One entry for each query sequence (causal: at least as many keys as queries), without a window.
  // Not owned; none: the keys of the queries' own tokens.
  const Ragged* keys = nullptr;
  Mask mask = Mask::kCausal;

  const Ragged& key_sequences() const { return keys == nullptr ? *sequences : *keys; }
};

struct AttentionGradients {
  at::Tensor dq;
  at::Tensor dk;
  at::Tensor dv;
};

// A launch by its numbers, for formulas of its memory.
struct LaunchShape {
  std::int64_t tokens = 0;  // queries
  std::int64_t sequences = 1;
  std::int64_t longest = 0;  // sequence of queries or keys
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t value_bytes = 2;
  std::int64_t key_tokens = 0;  // 0: as many as queries

  std::int64_t keys() const { return key_tokens > 0 ? key_tokens : tokens; }
};

// Safe to call from several threads; counts its launches.
class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  virtual std::string name() const = 0;

  // Writes `out`; returns the log-sum-exp of each row's scores (float64 for float64 inputs, else
  // float32).
  virtual at::Tensor forward(const AttentionInputs& inputs, const at::Tensor& out) = 0;

  // Writes the three gradients. Where the keys are a part of what the queries see, out and lse are
  // those over all of it: the gradients' parts then add up.
  virtual void backward(const AttentionInputs& inputs,
                        const at::Tensor& out,
                        const at::Tensor& lse,
                        const at::Tensor& dout,
                        const AttentionGradients& gradients) = 0;

  // Most bytes that a launch allocates beside its results (out, lse, the gradients) and frees at
  // its end, for operands whose heads lie side by side.
  virtual std::int64_t workspace_bytes(const LaunchShape& shape, bool backward) const = 0;

  std::atomic<std::int64_t> forward_launches = 0;
  std::atomic<std::int64_t> backward_launches = 0;
};

// ATen's flash attention for CPU tensors: float32, bfloat16, float64; a window, or more keys than
// queries under a causal mask, through a tensor of the mask.
std::unique_ptr<AttentionKernel> make_cpu_attention();
// ATen's FlashAttention-2 for CUDA tensors (Ampere and newer): bfloat16, float16;
// deterministic where torch.use_deterministic_algorithms(True) holds.
std::unique_ptr<AttentionKernel> make_flash_attention();

}  // namespace nsp
