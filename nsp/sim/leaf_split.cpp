#include "nsp/sim/leaf_split.h"

#include <algorithm>

#include "nsp/plan/layout.h"

namespace nsp {
namespace {

Passes largest(const Passes& a, const Passes& b) {
  return {.forward = std::max(a.forward, b.forward), .backward = std::max(a.backward, b.backward)};
}

Passes first_prologue(const RoundTimes& times,
                      std::size_t rank,
                      const std::vector<LevelWave>& waves) {
  for (const LevelWave& wave : waves) {
    const LevelTimes& level = times.levels[place_of(times.levels, wave)];
    const NodeTimes& node = level.nodes[rank / static_cast<std::size_t>(wave.degree)];
    if (node.active) {
      return node.cost.prologue;
    }
  }
  return {};
}

}  // namespace

LeafSplit::LeafSplit(const CostModel& model, const Round& round, std::int32_t world)
    : model_(model), leaves_(static_cast<std::size_t>(world)) {
  std::vector<const Placement*> order;
  for (const Placement& placement : round.placements) {
    if (placement.node.degree == 1) {
      order.push_back(&placement);
    }
  }
  std::ranges::stable_sort(order, [](const Placement* a, const Placement* b) {
    return a->tokens != b->tokens ? a->tokens > b->tokens : a->sequence < b->sequence;
  });
  for (const Placement* placement : order) {
    leaves_[static_cast<std::size_t>(placement->node.first_rank)].push_back(
        model.sequence(placement->tokens, head_split(1)));
  }
}

std::int32_t LeafSplit::count(std::size_t rank, const Passes& least) const {
  if (least == Passes{}) {
    return 0;
  }
  NodeSums sums;
  std::int32_t count = 0;
  for (const SequenceCost& leaf : leaves_[rank]) {
    sums.add(leaf);
    ++count;
    const Passes compute = model_.phases(head_split(1), sums).compute;
    if (compute.forward >= least.forward && compute.backward >= least.backward) {
      break;
    }
  }
  return count;
}

std::vector<std::int32_t> LeafSplit::leaf_first(const RoundTimes& times,
                                                const std::vector<LevelWave>& waves,
                                                std::int64_t halves) const {
  std::vector<std::int32_t> counts(leaves_.size(), 0);
  if (waves.empty()) {
    return counts;
  }
  const auto tree =
      static_cast<std::size_t>(std::ranges::max(waves, {}, &LevelWave::degree).degree);
  for (std::size_t begin = 0; begin < counts.size(); begin += tree) {
    Passes least;
    for (std::size_t rank = begin; rank < begin + tree; ++rank) {
      least = largest(least, first_prologue(times, rank, waves));
    }
    least = {.forward = least.forward * halves / 2, .backward = least.backward * halves / 2};
    for (std::size_t rank = begin; rank < begin + tree; ++rank) {
      counts[rank] = count(rank, least);
    }
  }
  return counts;
}

NodeTimes LeafSplit::part(std::size_t rank, std::size_t begin, std::size_t end) const {
  if (begin == end) {
    return {};
  }
  NodeSums sums;
  for (std::size_t i = begin; i < end; ++i) {
    sums.add(leaves_[rank][i]);
  }
  return {.cost = model_.phases(head_split(1), sums), .active = true, .backend = Backend::kLocal};
}

RoundTimes LeafSplit::times(RoundTimes times, const std::vector<std::int32_t>& leaf_first) const {
  if (std::ranges::all_of(leaf_first, [](std::int32_t count) { return count == 0; })) {
    return times;
  }
  std::vector<NodeTimes>& rest = times.levels.back().nodes;
  for (std::size_t rank = 0; rank < leaves_.size(); ++rank) {
    const auto cut = static_cast<std::size_t>(leaf_first[rank]);
    times.leaf_first.push_back(part(rank, 0, cut));
    rest[rank] = part(rank, cut, leaves_[rank].size());
  }
  return times;
}

}  // namespace nsp
