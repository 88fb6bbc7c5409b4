#include "nsp/sim/rank_rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "nsp/plan/layout.h"
#include "nsp/plan/wave.h"
#include "nsp/plan/way.h"

namespace nsp {
namespace {

// KV heads times rows in head layout, for a row of the rank: heads are copied where a node has more
// ranks than there are heads, and gather holds the keys of the whole ring.
std::int64_t heads_of_a_row(const Way& way, std::int64_t kv_heads) {
  const bool gathers = way.backend == Backend::kGather || way.backend == Backend::kUspGather;
  const std::int64_t heads = std::max<std::int64_t>(kv_heads, way.ulysses_degree);
  return gathers ? heads * ring_size(way) : heads;
}

void add(RankRows& rank, const Placement& placement, std::int64_t tokens, std::int64_t heads) {
  const Mark mark = mark_of(placement);
  const bool leaf = placement.node.degree == 1;
  rank.tokens += tokens;
  rank.read += leaf ? tokens : 0;
  rank.saved += mark == Mark::kSave || mark == Mark::kSaveQkv ? tokens : 0;
  rank.offloaded += mark == Mark::kOffload ? tokens : 0;
  rank.saved_qkv += mark == Mark::kSaveQkv ? tokens : 0;
  if (!leaf) {
    rank.exchanged += tokens;
    rank.exchanged_heads += tokens * heads;
    rank.saved_exchanged += mark != Mark::kRecompute ? tokens : 0;
    rank.saved_heads += mark != Mark::kRecompute ? tokens * heads : 0;
  }
}

}  // namespace

std::vector<RankRows> rank_rows(const Round& round, std::int32_t world, std::int64_t kv_heads) {
  const auto ranks = static_cast<std::size_t>(world);
  std::vector<RankRows> rows(ranks);
  std::map<std::pair<std::int32_t, Wave>, std::vector<std::int64_t>> launches;
  for (const Placement& placement : round.placements) {
    const std::int64_t heads = heads_of_a_row(way_of(placement), kv_heads);
    std::vector<std::int64_t>& launch =
        launches[{placement.node.degree, wave_of(placement, round.schedule.cuts)}];
    launch.resize(ranks);
    for (std::int32_t i = 0; i < placement.node.degree; ++i) {
      const std::int32_t member = placement.node.first_rank + i;
      const auto rank = static_cast<std::size_t>(member);
      const std::int64_t tokens = tokens_of(placement, i);
      launch[rank] += tokens;
      add(rows[rank], placement, tokens, heads);
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const auto& [wave, launch] : launches) {
      rows[rank].launched = std::max(rows[rank].launched, launch[rank]);
    }
    rows[rank].tokens = std::max<std::int64_t>(rows[rank].tokens, 1);
    rows[rank].read = rows[rank].read > 0 ? rows[rank].tokens : 0;
  }
  return rows;
}

}  // namespace nsp
