#include "nsp/sim/row_bytes.h"

namespace nsp {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kIndex = 8;

std::int64_t mlp_bytes(const ModelShape& shape) {
  const std::int64_t b = shape.bytes_per_value;
  if (shape.experts == 0) {
    return b * 4 * shape.intermediate;  // gate, its activation, up, their product
  }
  const std::int64_t router = kFloat * (shape.experts + 1 + shape.top_k) + kIndex * shape.top_k;
  const std::int64_t order = shape.top_k * (3 * kIndex + b);  // permutations and weights
  return router + order + b * shape.top_k * (2 * shape.hidden + 4 * shape.intermediate);
}

}  // namespace

RowBytes row_bytes(const ModelShape& shape, bool qk_norm) {
  const std::int64_t b = shape.bytes_per_value;
  const std::int64_t copies = shape.experts > 0 ? shape.top_k : 1;
  const std::int64_t wide_norm = kFloat * shape.hidden + kFloat + 2 * b * shape.hidden;
  // Values that are fp32 already are not copied: the first norm keeps the layer's input itself.
  const std::int64_t shared = b == kFloat ? kFloat * shape.hidden : 0;
  const std::int64_t head_norm = kFloat * shape.head_dim + kFloat + b * shape.head_dim;
  const std::int64_t output = b * shape.heads * shape.head_dim;
  const std::int64_t log_sum_exp = (b == 8 ? 8 : kFloat) * shape.heads;
  RowBytes row;
  row.input = b * shape.hidden;
  row.norm = wide_norm;
  row.saved = output + log_sum_exp;
  row.offloaded = log_sum_exp;
  row.attention =
      wide_norm - shared + row.saved + (qk_norm ? head_norm * (shape.heads + shape.kv_heads) : 0);
  row.kept = row.attention + wide_norm + mlp_bytes(shape);
  row.kept_input = shared;
  row.read = b * shape.head_dim * (shape.heads + 2 * shape.kv_heads);
  row.exchanged = 2 * output;
  row.kv_head = 2 * b * shape.head_dim;
  // The layer's own gradient; of experts three tensors of chosen rows (spread, then put in order),
  // of a dense MLP two of its width.
  row.first =
      row.input + b * (shape.experts > 0 ? 3 * copies * shape.hidden : 2 * shape.intermediate);
  row.late = row.first - row.input + 2 * b * copies * shape.intermediate;
  row.at_attention = row.input + output + row.read;
  return row;
}

}  // namespace nsp
