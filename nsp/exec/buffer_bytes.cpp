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
#include "nsp/exec/buffer_bytes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "nsp/comm/pull_schedule.h"
#include "nsp/exec/head_exchange.h"
#include "nsp/exec/runs.h"
#include "nsp/exec/zigzag_bytes.h"

namespace nsp {
namespace {

// Bytes of one row, of the heads that a rank works on.
struct RowBytes {
  std::int64_t query = 0;
  std::int64_t qkv = 0;  // all three
};

struct Sizes {
  std::int64_t own = 0;     // k t
  std::int64_t node = 0;    // T
  std::int64_t sorted = 0;  // T, or 0 when nothing moves
  RowBytes row;
};

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

StageBytes peer_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  const HeadSplit split = split_heads(heads, block.degree);
  const RowBytes row = row_bytes_of(split, value);
  const std::int64_t rest =
      split.copies == 1 ? 0 : block.degree * block.tokens * (row.qkv - row.query);
  return backward ? peer_backward(block, row, rest, stage) : peer_forward(block, row, stage);
}

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

// Nearly all saved: operands of all rows as they came, as one part in order of sources, and merged.
std::int64_t saved_bound(const Sizes& whole) {
  return 3 * whole.node * (2 * whole.row.query + whole.row.qkv);
}

// Of a block in a recomputed pass.
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

std::int64_t log_sum_exp_bytes(const ValueShape& value) {
  return value.bytes == 8 ? 8 : 4;
}

// A rank with two rows of one long sequence, and all others of its node like it: pieces of as many
// rows as there are inner ranks.
Block two_rows(const Way& way, std::int32_t index) {
  Block block{.degree = way.degree,
              .level_degree = way.degree,
              .backend = way.backend,
              .inner = way.ulysses_degree,
              .rank = index * way.ulysses_degree,
              .tokens = 2,
              .lengths = {std::int64_t{2} * way.degree},
              .rank_tokens = std::vector<std::int64_t>(static_cast<std::size_t>(way.ulysses_degree),
                                                       std::int64_t{2}),
              .to_sequences = {1, 0}};  // they move
  if (ring_size(way) > 1) {
    const auto pieces = static_cast<std::size_t>(2 * ring_size(way));
    block.pieces = {.ring = ring_size(way),
                    .tokens = {std::vector<std::int64_t>(pieces, way.ulysses_degree)}};
  }
  return block;
}

std::int64_t most_of_two_rows(const Block& block, const Heads& heads, const ValueShape& value) {
  std::int64_t most = 0;
  for (const bool backward : {false, true}) {
    for (const Stage stage :
         {Stage::kPrologue, Stage::kCompute, Stage::kEpilogue, Stage::kFinish}) {
      most = std::max(most, exchange_bytes(block, heads, value, stage, backward).peak);
    }
  }
  return most;
}

// Queries: the rows of a ring index. Gather's keys: the node's, and once more the queries' own.
LaunchShape largest_launch(const Way& way,
                           const Heads& heads,
                           const ValueShape& value,
                           std::int64_t tokens) {
  const HeadSplit split = split_heads(heads, way.ulysses_degree);
  const std::int64_t node = way.degree * tokens, queries = way.ulysses_degree * tokens;
  const bool gathers = way.backend == Backend::kGather || way.backend == Backend::kUspGather;
  return {.tokens = queries,
          .longest = node,
          .heads = split.query,
          .kv_heads = split.kv,
          .head_dim = value.head_dim,
          .value_bytes = value.bytes,
          .key_tokens = gathers ? node + queries : queries};
}

}  // namespace

std::int64_t stash_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; round.recomputed && i < round.blocks.size(); ++i) {
    const Parts& parts = round.recomputed->parts[i];
    if (!parts.any_saved) {
      continue;
    }
    const HeadSplit split = split_heads(heads, round.blocks[i]->block().degree);
    const std::int64_t qkv = node_rows(parts.save_qkv);
    const std::int64_t head = value.head_dim * value.bytes;
    bytes += parts.saved_rows() * heads.query * head +
             (qkv + node_rows(parts.save)) * split.query * log_sum_exp_bytes(value) +
             qkv * (split.query + 2 * split.kv) * head;
  }
  return bytes;
}

StageBytes exchange_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  if (block.degree == 1) {
    return {};
  }
  if (block.pieces.ring > 1 && block.backend != Backend::kUlysses) {
    return zigzag_bytes(block, heads, value, stage, backward);
  }
  if (block.transport == Transport::kPeerCopy) {
    return peer_bytes(block, heads, value, stage, backward);
  }
  const Sizes sizes = sizes_of(block, heads, value);
  return backward ? backward_bytes(sizes, stage) : forward_bytes(sizes, stage);
}

std::int64_t exchange_bytes(const ProgramRound& round,
                            const Heads& heads,
                            const ValueShape& value,
                            bool backward) {
  std::vector<std::int64_t> held(round.blocks.size(), 0);
  std::int64_t most = 0;
  const auto enter = [&](std::size_t block, Stage stage) {
    const Block& whole = round.blocks[block]->block();
    const bool saved = !round.parts.empty() && round.parts[block].any_saved;
    const StageBytes bytes =
        saved ? saved_bytes(round.parts[block], whole, heads, value, stage, backward)
              : exchange_bytes(whole, heads, value, stage, backward);
    held[block] = 0;
    most = std::max(most, std::accumulate(held.begin(), held.end(), bytes.peak));
    held[block] = bytes.after;
  };
  for (const Step& step : round.steps) {
    enter(step.block, stage_of(step.phase));
  }
  for (std::size_t block = 0; block < held.size(); ++block) {
    enter(block, Stage::kFinish);
  }
  return most;
}

std::int64_t arena_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value) {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  for (const auto& backend : round.blocks) {
    const Block& block = backend->block();
    if (block.transport == Transport::kPeerCopy) {
      const RowBytes row = row_bytes_of(split_heads(heads, block.degree), value);
      const std::int64_t there = (block.degree - 1) * block.level.most;
      const std::int64_t back = block.level.most_elsewhere;
      forward += PullSchedule::bytes(there, row.qkv) + PullSchedule::bytes(back, row.query);
      backward += PullSchedule::bytes(there, row.query) + PullSchedule::bytes(back, row.qkv);
    }
  }
  return std::max(forward, backward);
}

// Every sum is linear in rows, so a rank whose rows all lie at the dearest way holds most. Rows
// of the node beyond its share may sit on a rank with few of its own: not more than its degree
// times `tokens` together, as here.
MemoryBound memory_bound(const AttentionKernel& kernel,
                         const Heads& heads,
                         const ValueShape& value,
                         std::int64_t tokens,
                         const std::vector<Way>& ways,
                         std::int32_t reach,
                         bool saves) {
  MemoryBound bound;
  for (const Way& way : ways) {
    const LaunchShape launch = largest_launch(way, heads, value, tokens);
    if (way.backend == Backend::kUlysses && way.degree <= reach) {
      const RowBytes row = row_bytes_of(split_heads(heads, way.degree), value);
      const std::int64_t leaving = (way.degree - 1) * tokens;
      bound.arena_bytes = std::max(bound.arena_bytes, leaving * (row.qkv + row.query));
    }
    for (const bool backward : {false, true}) {
      bound.workspace_bytes =
          std::max(bound.workspace_bytes, kernel.workspace_bytes(launch, backward));
    }
    for (std::int32_t index = 0; index < ring_size(way); ++index) {
      const std::int64_t bytes = most_of_two_rows(two_rows(way, index), heads, value);
      bound.exchange_bytes = std::max(bound.exchange_bytes, (bytes * tokens + 1) / 2);
    }
    if (saves && way.backend == Backend::kUlysses) {
      const std::int64_t bytes = saved_bound(sizes_of(two_rows(way, 0), heads, value));
      bound.exchange_bytes = std::max(bound.exchange_bytes, bytes * tokens / 2);
    }
  }
  return bound;
}

}  // namespace nsp
