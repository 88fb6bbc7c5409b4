#include "nsp/cost/attention_cost.h"

#include <algorithm>
#include <cmath>

#include "nsp/cost/exact.h"

namespace nsp {
namespace {

constexpr std::int64_t kTile = 128;

std::int64_t picoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}

std::int64_t tiles(std::int64_t tokens) {
  return (tokens + kTile - 1) / kTile;
}

}  // namespace

Blocks& Blocks::operator+=(const Blocks& other) {
  blocks += other.blocks;
  rows += other.rows;
  entries += other.entries;
  return *this;
}

Blocks causal_blocks(std::int64_t tokens) {
  const std::int64_t n = tiles(tokens);
  return {.blocks = static_cast<std::int64_t>(wide(n) * wide(n + 1) / 2), .rows = n, .entries = 1};
}

Blocks full_blocks(std::int64_t tokens, std::int64_t kv_tokens) {
  const std::int64_t n = tiles(tokens);
  const std::int64_t m = tiles(kv_tokens);
  return {.blocks = static_cast<std::int64_t>(wide(n) * wide(m)),
          .rows = (n + m + 1) / 2,
          .entries = 1};
}

AttentionCost::AttentionCost(const AttentionLaw& law)
    : row_(picoseconds(law.row_seconds)),
      entry_{picoseconds(law.entry_seconds),
             picoseconds(law.entry_seconds) + picoseconds(law.entry_grouped_seconds)},
      path_fixed_{picoseconds(law.path_fixed_seconds), picoseconds(law.path_fixed_grouped_seconds)},
      path_row_{picoseconds(law.path_row_seconds), picoseconds(law.path_row_grouped_seconds)},
      launch_(ceil_ratio(wide(picoseconds(law.launch_seconds)), 1000)) {
  for (const BlockPoint& point : law.block) {
    block_.push_back({.tokens = point.tokens, .picoseconds = picoseconds(point.seconds)});
  }
}

std::int64_t AttentionCost::block(std::int64_t tokens) const {
  const auto next = std::ranges::upper_bound(block_, tokens, {}, &Point::tokens);
  if (next == block_.begin()) {
    return next->picoseconds;
  }
  const Point& before = *(next - 1);
  if (next == block_.end()) {
    return before.picoseconds;
  }
  const __int128 rise = next->picoseconds - before.picoseconds;
  const __int128 run = next->tokens - before.tokens;
  return before.picoseconds + static_cast<std::int64_t>(rise * (tokens - before.tokens) / run);
}

std::int64_t AttentionCost::work(std::int64_t tokens,
                                 std::int64_t heads,
                                 std::int64_t kv_heads) const {
  return work(causal_blocks(tokens), tokens, heads, kv_heads);
}

std::int64_t AttentionCost::work(const Blocks& blocks,
                                 std::int64_t kv_tokens,
                                 std::int64_t heads,
                                 std::int64_t kv_heads) const {
  const Wide head = wide(block(kv_tokens)) * wide(blocks.blocks) + wide(row_) * wide(blocks.rows);
  const Wide entries = wide(entry_[heads > kv_heads]) * wide(blocks.entries);
  return ceil_ratio(entries + wide(heads) * head, 1000);
}

std::int64_t AttentionCost::path(std::int64_t tokens, bool grouped) const {
  return ceil_ratio(wide(path_fixed_[grouped]) + wide(path_row_[grouped]) * wide(tiles(tokens)),
                    1000);
}

}  // namespace nsp
