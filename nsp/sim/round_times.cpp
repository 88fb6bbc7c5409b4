#include "nsp/sim/round_times.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/plan/issue_order.h"
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

std::size_t log2_of(std::int32_t degree) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(degree)));
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

// To the sums of its level (by log2 of the degree) and node, if it counts.
void add(const CostModel& model,
         const Placement& placement,
         std::int32_t world,
         const Counts& counts,
         std::vector<std::vector<WaySums>>& sums) {
  if (!is_node(placement.node, world, placement.node.degree)) {
    bad_input("sequence", placement.sequence, "is on a node that is not in the tree");
  }
  const Way way = way_of(placement);
  SequenceCost cost = model.sequence(placement.tokens, way);
  if (counts(placement, cost)) {
    auto& level = sums[log2_of(way.degree)];
    sums_of(level[static_cast<std::size_t>(placement.node.first_rank / way.degree)], way).add(cost);
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

std::size_t level_of(const std::vector<LevelTimes>& levels, std::int32_t degree) {
  return static_cast<std::size_t>(std::ranges::find(levels, degree, &LevelTimes::degree) -
                                  levels.begin());
}

std::vector<Issue> serial_order(const std::vector<LevelTimes>& levels) {
  std::vector<Issue> order;
  for (const LevelTimes& level : levels) {
    if (level.degree > 1) {
      order.push_back({Phase::kPrologue, level.degree});
    }
    order.push_back({Phase::kCompute, level.degree});
    if (level.degree > 1) {
      order.push_back({Phase::kEpilogue, level.degree});
    }
  }
  return order;
}

std::vector<LevelTimes> level_times(const CostModel& model,
                                    const Round& round,
                                    std::int32_t world,
                                    const Counts& counts) {
  std::vector<std::int32_t> degrees = exchanged_degrees(round);
  degrees.push_back(1);
  std::vector<std::vector<WaySums>> sums(kMostLevels);
  for (const std::int32_t degree : degrees) {
    sums[log2_of(degree)].resize(static_cast<std::size_t>(world / degree));
  }
  const std::vector<bool> first = runs_first(round);
  for (std::size_t i = 0; i < round.placements.size(); ++i) {
    if (!first[i]) {
      add(model, round.placements[i], world, counts, sums);
    }
  }
  std::vector<LevelTimes> levels;
  for (const std::int32_t degree : degrees) {
    LevelTimes& level = levels.emplace_back(LevelTimes{.degree = degree, .nodes = {}});
    for (const WaySums& ways : sums[log2_of(degree)]) {
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
      add(model, round.placements[i], world, counts, sums);
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
