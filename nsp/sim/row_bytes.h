// Bytes that a row (a token of a rank) takes in one decoder layer of Hugging Face's eager kind:
// counted from what autograd saves and from the gradients that live beside it. b bytes a value, h
// hidden, H query and K key heads of D, k of E experts a token, i their width.
//
//   norm         4 h + 4 + 2 b h       its input and reciprocal root in fp32, both results
//   q and k norm (4 D + 4 + b D) (H + K)
//   output       b H D + 4 H           what the output projection reads, and the log-sum-exp
//   experts      4 E + (36 + b) k + 4 + b k (2 h + 4 i)   router, order, and six tensors of chosen
//                                      rows (grouped matrix products); dense: b 4 i
//   q, k, v      b D (H + 2 K)         where backward reads the layer's own rows
//   head layout  b D (2 H + 2 K')      of exchanged rows: q and the output, k and v (K' heads)
//
// tests/python/test_working_set.py holds the counts to real layers, tests/sim to those on a GPU.
#pragma once

#include <cstdint>

#include "nsp/workload/model_shape.h"

namespace nsp {

struct RowBytes {
  std::int64_t input = 0;         // the layer's, which checkpointing keeps
  std::int64_t kept = 0;          // for backward; neither the input, nor q, k, v, nor head layout
  std::int64_t kept_input = 0;    // the input, where the first norm makes no copy of it
  std::int64_t read = 0;          // q, k and v
  std::int64_t exchanged = 0;     // q and the output in head layout
  std::int64_t kv_head = 0;       // a key and a value of one head
  std::int64_t saved = 0;         // what a mark keeps: output and log-sum-exp
  std::int64_t offloaded = 0;     // of that, what stays on the device: the log-sum-exp
  std::int64_t norm = 0;          // of one norm
  std::int64_t attention = 0;     // of kept: first norm to output projection
  std::int64_t first = 0;         // gradients when backward is at the end of the layer
  std::int64_t late = 0;          // of first and kept, gone when the MLP's weights have gradients
  std::int64_t at_attention = 0;  // gradients while attention runs backward, without its buffers
};

// `qk_norm`: q and k are normalised (Qwen3).
RowBytes row_bytes(const ModelShape& shape, bool qk_norm);

}  // namespace nsp
