#include <algorithm>
#include <array>
#include <utility>

#include "nsp/exec/head_bytes.h"

namespace nsp {
namespace {

// Backward of a recomputed pass brings operands of the saved parts: `received` bytes come and
// `sent` go, by one all-to-all; they are merged with those of the rest. See saved_operands.h.
StageBytes saved_backward_bytes(const Parts& parts, const Sizes& whole, Stage stage) {
  const RowBytes row = whole.row;
  const std::array<std::pair<const Block*, std::int64_t>, 3> sections = {
      {{&parts.save_qkv, 2 * row.query},
       {&parts.save, 2 * row.query + row.qkv},
       {&parts.rest, row.query}}};
  std::int64_t sent = 0, received = 0, largest = 0;
  bool alone = false;  // one part has all rows: they are not put together anew
  for (const auto& [block, bytes] : sections) {
    sent += block->degree * block->tokens * bytes;
    received += node_rows(*block) * bytes;
    largest = std::max(largest, node_rows(*block) * bytes);
    alone = alone || node_rows(*block) == whole.node;
  }
  const std::int64_t merged = whole.node * (2 * row.query + row.qkv);
  const std::int64_t computed = whole.node * row.qkv;
  switch (stage) {
    case Stage::kPrologue:
      return {sent + received, sent + received};
    case Stage::kCompute:
      return {
          std::max({sent + received, received + merged + (alone ? 0 : largest), merged + computed}),
          computed};
    default:
      return {};
  }
}

}  // namespace

// Nearly all saved: operands of all rows as they came, as one part in order of sources, and merged.
std::int64_t saved_bound(const Sizes& whole) {
  return 3 * whole.node * (2 * whole.row.query + whole.row.qkv);
}

StageBytes saved_bytes(const Parts& parts,
                       const Block& whole,
                       const Heads& heads,
                       const ValueShape& value,
                       Stage stage,
                       bool backward) {
  if (!backward) {
    return parts.any_rest ? exchange_bytes(parts.rest, heads, value, stage, false) : StageBytes{};
  }
  const bool brings = stage == Stage::kPrologue || stage == Stage::kCompute;
  return brings && whole.degree > 1
             ? saved_backward_bytes(parts, sizes_of(whole, heads, value), stage)
             : exchange_bytes(whole, heads, value, stage, true);
}

}  // namespace nsp
