#include "nsp/planner/baselines/flexsp/partition.h"

#include <algorithm>
#include <bit>

namespace nsp {
namespace {

struct Load {
  std::int64_t time = 0;
  std::int64_t tokens = 0;  // of the fullest rank, each slice rounded up
};

std::size_t choose(const Problem& problem,
                   const Partition& partition,
                   const std::vector<Load>& loads,
                   std::size_t bucket,
                   std::int64_t length) {
  const std::size_t none = loads.size();
  std::size_t best = none;
  std::size_t emptiest = none;
  for (std::size_t g = 0; g < loads.size(); ++g) {
    const Partition::Group& group = partition.groups[g];
    if (partition.at(bucket, group.kind) <= 0) {
      continue;
    }
    const std::int64_t degree = std::int64_t{1} << group.level;
    const std::int64_t after = loads[g].tokens + (length + degree - 1) / degree;
    if (after <= problem.token_budget && (best == none || loads[g].time < loads[best].time)) {
      best = g;
    }
    if (emptiest == none || loads[g].tokens < loads[emptiest].tokens) {
      emptiest = g;
    }
  }
  return best == none ? emptiest : best;
}

}  // namespace

std::vector<Node> nodes_of(const Partition& partition) {
  std::vector<Node> nodes;
  std::int32_t first = 0;
  for (const Partition::Group& group : partition.groups) {
    nodes.push_back({.first_rank = first, .degree = std::int32_t{1} << group.level});
    first += nodes.back().degree;
  }
  return nodes;
}

std::vector<Node> deal(CostTable& costs, const LinearCosts& linear, Partition partition) {
  const Problem& problem = costs.problem();
  const std::vector<Node> groups = nodes_of(partition);
  std::vector<Load> loads(groups.size());
  std::vector<Node> placed;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < linear.buckets(); ++k) {
    for (std::size_t i = begin; i < linear.ends[k]; ++i) {
      const std::int64_t length = problem.sequences[i].tokens;
      const std::size_t g = choose(problem, partition, loads, k, length);
      const std::size_t level = partition.groups[g].level;
      Load& load = loads[g];
      load.time += load.tokens == 0 ? costs.opening_share(i, level) : costs.share(i, level);
      load.tokens += (length + groups[g].degree - 1) / groups[g].degree;
      --partition.at(k, partition.groups[g].kind);
      placed.push_back(groups[g]);
    }
    begin = linear.ends[k];
  }
  return placed;
}

Partition partition_of(const LinearCosts& linear,
                       const std::vector<Node>& groups,
                       const std::vector<Node>& placed) {
  Partition partition{.groups = {}, .kinds = groups.size(), .quota = {}};
  std::vector<std::size_t> group_of_rank(static_cast<std::size_t>(linear.world), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto degree = static_cast<unsigned>(groups[g].degree);
    partition.groups.push_back(
        {.level = static_cast<std::size_t>(std::countr_zero(degree)), .kind = g});
    group_of_rank[static_cast<std::size_t>(groups[g].first_rank)] = g;
  }
  partition.quota.assign(linear.buckets() * groups.size(), 0);
  std::size_t k = 0;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    k += i == linear.ends[k];
    ++partition.at(k, group_of_rank[static_cast<std::size_t>(placed[i].first_rank)]);
  }
  return partition;
}

double linear_time(const LinearCosts& linear, const Partition& partition) {
  double most = 0;
  for (const Partition::Group& group : partition.groups) {
    double time = linear.fixed[group.level];
    std::int64_t members = 0;
    for (std::size_t k = 0; k < linear.buckets(); ++k) {
      const std::int64_t count = partition.at(k, group.kind);
      time += linear.at(k, group.level).time * static_cast<double>(count);
      members += count;
    }
    most = members > 0 ? std::max(most, time) : most;
  }
  return most;
}

}  // namespace nsp
