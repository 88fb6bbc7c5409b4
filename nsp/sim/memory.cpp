#include "nsp/sim/memory.h"

#include <algorithm>

#include "nsp/sim/rank_rows.h"
#include "nsp/sim/row_bytes.h"

namespace nsp {
namespace {

constexpr std::int64_t kWorkspaceBytes =
    12;  // a token, head and head_dim: fp32 dq, dk, dv partials

// Rows with marks that are not looked at.
RankRows without_saved(RankRows rows) {
  rows.saved = rows.saved_exchanged = rows.saved_heads = rows.saved_qkv = rows.offloaded = 0;
  return rows;
}

std::int64_t bytes_of(RankRows rows, const ModelShape& shape, Checkpointing checkpointing) {
  const RowBytes row = row_bytes(shape, shape.experts > 0);
  if (checkpointing != Checkpointing::kMarks) {
    rows = without_saved(rows);
  }
  const std::int64_t kept = rows.tokens * row.kept + rows.read * row.read +
                            (rows.exchanged - rows.saved_exchanged) * row.exchanged +
                            (rows.exchanged_heads - rows.saved_heads) * row.kv_head;
  const std::int64_t end = kept + rows.tokens * row.first;
  const std::int64_t at_attention = rows.tokens * (row.attention + row.at_attention) +
                                    rows.read * row.read + rows.exchanged * row.exchanged +
                                    rows.exchanged_heads * row.kv_head +
                                    kWorkspaceBytes * rows.launched * shape.heads * shape.head_dim;
  const std::int64_t layer = std::max(end, at_attention);
  if (checkpointing == Checkpointing::kNone) {
    return (shape.layers - 1) * (kept + rows.tokens * row.kept_input) + layer;
  }
  const std::int64_t copied = rows.offloaded * (row.saved - row.offloaded);  // of one layer
  return shape.layers * (rows.tokens * row.input + rows.saved * row.saved +
                         rows.saved_qkv * row.read + rows.offloaded * row.offloaded) +
         copied + layer;
}

}  // namespace

std::vector<std::int64_t> memory_bytes(const Plan& plan,
                                       const ModelShape& shape,
                                       Checkpointing checkpointing) {
  std::vector<std::int64_t> most(static_cast<std::size_t>(plan.world), 0);
  for (const Round& round : plan.rounds) {
    const std::vector<RankRows> ranks = rank_rows(round, plan.world, shape.kv_heads);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      most[rank] = std::max(most[rank], bytes_of(ranks[rank], shape, checkpointing));
    }
  }
  return most;
}

}  // namespace nsp
