#include "nsp/planner/baselines/megatron_dcp.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "nsp/planner/baselines/megatron_schedule.h"
#include "nsp/planner/cost_table.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

Solution score_batch(const Problem& batch, const MegatronBatch& groups) {
  Problem problem = batch;
  problem.sequences.clear();
  std::vector<std::pair<std::size_t, Node>> placed;
  for (const MegatronGroup& group : groups) {
    for (const std::size_t member : group.members) {
      placed.push_back({member, {.first_rank = group.first_rank, .degree = group.size}});
    }
  }
  std::ranges::sort(placed, {}, &std::pair<std::size_t, Node>::first);
  std::vector<Node> nodes;
  for (const auto& [member, node] : placed) {
    problem.sequences.push_back(batch.sequences[member]);
    nodes.push_back(node);
  }
  return score(problem, nodes);
}

std::vector<Solution> score_all(const Problem& batch, const std::vector<MegatronBatch>& batches) {
  std::vector<Solution> rounds;
  for (const MegatronBatch& groups : batches) {
    rounds.push_back(score_batch(batch, groups));
  }
  return rounds;
}

bool is_tree(const Problem& batch, const std::vector<MegatronBatch>& batches) {
  return std::ranges::all_of(batches, [&](const MegatronBatch& groups) {
    return std::ranges::all_of(groups, [&](const MegatronGroup& group) {
      return is_node(
          {.first_rank = group.first_rank, .degree = group.size}, batch.world, batch.sp_max);
    });
  });
}

// A schedule looks at every sequence and group: large problems try a third of the settings.
bool is_large(const Problem& batch) {
  return std::ssize(batch.sequences) * batch.world > (std::int64_t{1} << 22);
}

// M as 1/64 of the token budget.
std::vector<std::int64_t> all_parts() {
  return {64, 56, 48, 40, 32, 24, 16, 12, 8};
}

std::vector<MegatronSettings> settings_of(const Problem& batch) {
  std::vector<MegatronSettings> all;
  const std::vector<std::int64_t> parts =
      is_large(batch) ? std::vector<std::int64_t>{64, 40, 24} : all_parts();
  for (const std::int64_t part : parts) {
    for (const std::int32_t smallest : {1, 4, 16}) {
      all.push_back({.world = batch.world,
                     .largest = batch.sp_max,
                     .tokens = std::max<std::int64_t>(1, batch.token_budget * part / 64),
                     .smallest = std::min(smallest, batch.sp_max)});
    }
  }
  return all;
}

}  // namespace

std::vector<Solution> megatron_dcp(const Problem& batch, std::int64_t most) {
  const std::vector<std::int64_t> lengths = tokens_of(batch.sequences);
  CostTable costs(batch);
  const auto level = [](std::int32_t size) {
    return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(size)));
  };
  MegatronLimit limit{
      .share = [&](std::size_t i, std::int32_t size) { return costs.share(i, level(size)); },
      .alone = [&](std::size_t i,
                   std::int32_t size) { return costs.opening_share(i, level(size)); },
      .fixed = batch.model->dense_fixed().sum(),
      .most = most};
  std::vector<Solution> best;
  for (const MegatronSettings& settings : settings_of(batch)) {
    const auto batches = megatron_schedule(lengths, settings, &limit);
    std::vector<Solution> rounds =
        is_tree(batch, batches) ? score_all(batch, batches) : std::vector<Solution>{};
    if (!rounds.empty() && all_feasible(rounds) && total_load(rounds) <= limit.most) {
      limit.most = total_load(rounds);
      best = std::move(rounds);
    }
  }
  return best;
}

}  // namespace nsp
