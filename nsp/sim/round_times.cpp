#include "nsp/sim/round_times.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

constexpr std::size_t kMostLevels = 32;

// The sums of one node, a way each: nearly always one.
using WaySums = std::vector<std::pair<Way, NodeSums>>;

NodeSums& sums_of(WaySums& ways, const Way& way) {
  for (auto& [known, sums] : ways) {
    if (known == way) {
      return sums;
    }
  }
  return ways.emplace_back(way, NodeSums{}).second;
}

// Where the sums of a wave of a level are.
std::size_t slot_of(std::int32_t degree, Wave wave) {
  return 2 * static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(degree))) +
         static_cast<std::size_t>(wave);
}

NodeTimes times_of(const CostModel& model, const WaySums& ways) {
  NodeTimes node;
  for (const auto& [way, sums] : ways) {
    const PhaseCost cost = model.phases(way, sums);
    node.cost.prologue += cost.prologue;
    node.cost.compute += cost.compute;
    node.cost.epilogue += cost.epilogue;
    node.active = true;
  }
  if (!ways.empty()) {
    node.backend = ways.front().first.backend;
  }
  return node;
}

// To the sums of its node in this slot, if it counts.
void add(const CostModel& model,
         const Placement& placement,
         std::int32_t world,
         const Counts& counts,
         std::vector<std::vector<WaySums>>& sums,
         std::size_t slot) {
  if (!is_node(placement.node, world, placement.node.degree)) {
    bad_input("sequence", placement.sequence, "is on a node that is not in the tree");
  }
  const Way way = way_of(placement);
  SequenceCost cost = model.sequence(placement.tokens, way);
  if (counts(placement, cost)) {
    const auto node = static_cast<std::size_t>(placement.node.first_rank / way.degree);
    sums_of(sums[slot][node], way).add(cost);
  }
}

}  // namespace

const Passes& phase_of(const PhaseCost& cost, Phase phase) {
  switch (phase) {
    case Phase::kPrologue:
      return cost.prologue;
    case Phase::kCompute:
      return cost.compute;
    case Phase::kEpilogue:
      break;
  }
  return cost.epilogue;
}

std::size_t place_of(const std::vector<LevelTimes>& levels, const LevelWave& wave) {
  const auto is_it = [&](const LevelTimes& level) {
    return level.degree == wave.degree && level.wave == wave.wave;
  };
  return static_cast<std::size_t>(std::ranges::find_if(levels, is_it) - levels.begin());
}

std::vector<Issue> serial_order(const std::vector<LevelTimes>& levels) {
  std::vector<Issue> order;
  for (const LevelTimes& level : levels) {
    if (level.degree > 1) {
      order.push_back({Phase::kPrologue, level.degree, level.wave});
    }
    order.push_back({Phase::kCompute, level.degree, level.wave});
    if (level.degree > 1) {
      order.push_back({Phase::kEpilogue, level.degree, level.wave});
    }
  }
  return order;
}

std::vector<LevelTimes> level_times(const CostModel& model,
                                    const Round& round,
                                    std::int32_t world,
                                    const Counts& counts) {
  std::vector<LevelWave> waves = exchanged_waves(round);
  waves.push_back({.degree = 1});
  std::vector<std::vector<WaySums>> sums(2 * kMostLevels);
  for (const auto& [degree, wave] : waves) {
    sums[slot_of(degree, wave)].resize(static_cast<std::size_t>(world / degree));
  }
  const std::vector<bool> first = runs_first(round);
  for (std::size_t i = 0; i < round.placements.size(); ++i) {
    if (!first[i]) {
      const Placement& placement = round.placements[i];
      const Wave wave = wave_of(placement, round.schedule.cuts);
      add(model, placement, world, counts, sums, slot_of(placement.node.degree, wave));
    }
  }
  std::vector<LevelTimes> levels;
  for (const auto& [degree, wave] : waves) {
    LevelTimes& level =
        levels.emplace_back(LevelTimes{.degree = degree, .wave = wave, .nodes = {}});
    for (const WaySums& ways : sums[slot_of(degree, wave)]) {
      level.nodes.push_back(times_of(model, ways));
    }
  }
  return levels;
}

std::vector<NodeTimes> leaf_first_times(const CostModel& model,
                                        const Round& round,
                                        std::int32_t world,
                                        const Counts& counts) {
  const std::vector<bool> first = runs_first(round);
  if (std::ranges::find(first, true) == first.end()) {
    return {};
  }
  std::vector<std::vector<WaySums>> sums(1);
  sums[0].resize(static_cast<std::size_t>(world));
  for (std::size_t i = 0; i < round.placements.size(); ++i) {
    if (first[i]) {
      add(model, round.placements[i], world, counts, sums, 0);
    }
  }
  std::vector<NodeTimes> ranks;
  for (const WaySums& ways : sums[0]) {
    ranks.push_back(times_of(model, ways));
  }
  return ranks;
}

RoundTimes round_times(const CostModel& model, const Round& round, std::int32_t world) {
  const std::int32_t ep = model.ep();
  if (world % ep != 0) {
    bad_input("ep", ep, "must divide the world of " + std::to_string(world) + " ranks");
  }
  const Counts all = [](const Placement&, SequenceCost&) { return true; };
  RoundTimes times{
      .levels = level_times(model, round, world, all),
      .leaf_first = leaf_first_times(model, round, world, all),
      .dense = std::vector<Passes>(static_cast<std::size_t>(world), model.dense_fixed()),
      .ep = ep,
      .experts = {},
      .tokens = rank_tokens(round, world)};
  for (std::size_t rank = 0; rank < times.dense.size(); ++rank) {
    const std::int64_t tokens = times.tokens[rank];
    times.dense[rank] += ep == 1 ? model.dense(tokens) : model.dense_before(tokens);
  }
  for (auto first = times.tokens.begin(); ep > 1 && first != times.tokens.end(); first += ep) {
    times.experts.push_back(model.experts(std::accumulate(first, first + ep, std::int64_t{0})));
  }
  return times;
}

}  // namespace nsp
