#include "nsp/exec/buffer_bytes.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "nsp/comm/pull_schedule.h"
#include "nsp/exec/head_bytes.h"
#include "nsp/exec/zigzag_bytes.h"

namespace nsp {
namespace {

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
    bytes += parts.stashed_rows() * heads.query * head +
             (qkv + node_rows(parts.save)) * split.query * log_sum_exp_bytes(value) +
             qkv * (split.query + 2 * split.kv) * head;
  }
  return bytes;
}

std::int64_t offload_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; round.recomputed && i < round.blocks.size(); ++i) {
    rows += round.recomputed->parts[i].offloaded_rows;
  }
  return rows * heads.query * value.head_dim * value.bytes;
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
  return collective_bytes(block, heads, value, stage, backward);
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
