// The sums follow ulysses.cpp and its exchange stage by stage. k ranks in the node, t rows of this
// rank, T of the node:
//
//   sent      k t rows before an exchange to heads, T before one to rows
//   received  T or k t
//   sorted    T: received rows in the order of sequences; no copy when they arrive in it
//
// By peer copies, what is sent lies in the arena, and what comes back lands in the layer's rows:
//
//   received  T; T more where a kernel puts them in order
//   own       t, while more runs than a few are brought to their place
//   rest      k t rows of gradients of copied KV heads
#include "nsp/exec/head_bytes.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "nsp/exec/head_exchange.h"
#include "nsp/exec/runs.h"

namespace nsp {
namespace {

StageBytes forward_bytes(const Sizes& s, Stage stage) {
  const std::int64_t saved = s.node * (s.row.qkv + s.row.query);
  const std::int64_t there = (s.own + s.node) * s.row.qkv;
  const std::int64_t back = saved + (s.sorted + s.own) * s.row.query;
  switch (stage) {
    case Stage::kPrologue:
      return {there, there};
    case Stage::kCompute:
      return {std::max({there, (s.node + s.sorted) * s.row.qkv, saved}), saved};
    case Stage::kEpilogue:
      return {back, back};
    case Stage::kFinish:
      return {back, saved};
  }
  return {};
}

StageBytes backward_bytes(const Sizes& s, Stage stage) {
  const std::int64_t there = (s.own + s.node) * s.row.query;
  const std::int64_t computed = s.node * s.row.qkv;
  const std::int64_t sent = s.sorted > 0 ? s.sorted * s.row.qkv : computed;
  const std::int64_t back = sent + s.own * s.row.qkv;
  switch (stage) {
    case Stage::kPrologue:
      return {there, there};
    case Stage::kCompute:
      return {std::max({there, (s.node + s.sorted) * s.row.query, s.node * s.row.query + computed}),
              computed};
    case Stage::kEpilogue:
      return {computed + s.sorted * s.row.qkv + s.own * s.row.qkv, back};
    case Stage::kFinish:
      return {back, 0};
  }
  return {};
}

// Bytes of peer copies that depend on the width of the rows in them.
struct PeerSizes {
  std::int64_t node = 0;    // T
  std::int64_t sorted = 0;  // T, or 0 when runs are pulled to their place
  std::int64_t own = 0;     // t, or 0
};

PeerSizes peer_sizes(const Block& block, std::int64_t row_bytes) {
  const std::vector<Run> runs = runs_of(block);
  const auto is_own = [&](const Run& run) { return block.first_rank + run.source == block.rank; };
  const bool by_runs = pulls_runs(block, row_bytes);
  const bool sorted = by_runs || std::ranges::is_sorted(block.to_sequences);
  const auto node = std::ssize(block.to_sequences);
  const bool through_buffer = std::ranges::count_if(runs, is_own) > kMostOwnRuns;
  return {.node = node, .sorted = sorted ? 0 : node, .own = through_buffer ? block.tokens : 0};
}

StageBytes peer_forward(const Block& block, const RowBytes& row, Stage stage) {
  const PeerSizes s = peer_sizes(block, row.qkv);
  const std::int64_t there = s.node * row.qkv;
  const std::int64_t saved = s.node * (row.qkv + row.query);
  switch (stage) {
    case Stage::kPrologue:
      return {there + (s.sorted > 0 ? 0 : s.own * row.qkv), there};
    case Stage::kCompute:
      return {std::max(there + s.sorted * row.qkv, saved), saved};
    case Stage::kEpilogue:
      return {saved + s.own * row.query, saved};
    case Stage::kFinish:
      return {saved, saved};
  }
  return {};
}

StageBytes peer_backward(const Block& block, const RowBytes& row, std::int64_t rest, Stage stage) {
  const PeerSizes s = peer_sizes(block, row.query);
  const std::int64_t there = s.node * row.query;
  const std::int64_t computed = s.node * row.qkv;
  switch (stage) {
    case Stage::kPrologue:
      return {there + (s.sorted > 0 ? 0 : s.own * row.query), there};
    case Stage::kCompute:
      return {std::max(there + s.sorted * row.query, there + computed), computed};
    case Stage::kEpilogue:
      return {computed + rest + s.own * row.qkv, rest};
    case Stage::kFinish:
      return {rest, 0};
  }
  return {};
}

}  // namespace

RowBytes row_bytes_of(const HeadSplit& split, const ValueShape& value) {
  const std::int64_t head = value.head_dim * value.bytes;
  return {.query = split.query * head, .qkv = (split.query + 2 * split.kv) * head};
}

Sizes sizes_of(const Block& block, const Heads& heads, const ValueShape& value) {
  Sizes sizes;
  sizes.own = block.degree * block.tokens;
  sizes.node = std::accumulate(block.rank_tokens.begin(), block.rank_tokens.end(), std::int64_t{0});
  sizes.sorted = std::ranges::is_sorted(block.to_sequences) ? 0 : sizes.node;
  sizes.row = row_bytes_of(split_heads(heads, block.degree), value);
  return sizes;
}

StageBytes collective_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  const Sizes sizes = sizes_of(block, heads, value);
  return backward ? backward_bytes(sizes, stage) : forward_bytes(sizes, stage);
}

StageBytes peer_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  const HeadSplit split = split_heads(heads, block.degree);
  const RowBytes row = row_bytes_of(split, value);
  const std::int64_t rest =
      split.copies == 1 ? 0 : block.degree * block.tokens * (row.qkv - row.query);
  return backward ? peer_backward(block, row, rest, stage) : peer_forward(block, row, stage);
}

}  // namespace nsp
