#include "nsp/planner/baselines/static.h"

#include <bit>
#include <vector>

namespace nsp {
namespace {

struct Group {
  std::int64_t cost = 0;    // what it is balanced by
  std::int64_t tokens = 0;  // of its fullest rank, each slice rounded up
};

std::size_t choose(const std::vector<Group>& groups, std::int64_t slice, std::int64_t budget) {
  std::size_t best = groups.size();
  std::size_t emptiest = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool fits = groups[i].tokens + slice <= budget;
    if (fits && (best == groups.size() || groups[i].cost < groups[best].cost)) {
      best = i;
    }
    if (groups[i].tokens < groups[emptiest].tokens) {
      emptiest = i;
    }
  }
  return best == groups.size() ? emptiest : best;
}

}  // namespace

std::vector<Node> static_nodes(CostTable& costs, std::int32_t degree, Balance balance) {
  const Problem& problem = costs.problem();
  const auto level = static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(degree)));
  std::vector<Group> groups(static_cast<std::size_t>(problem.world / degree));
  std::vector<Node> nodes;
  nodes.reserve(problem.sequences.size());
  for (std::size_t i = 0; i < problem.sequences.size(); ++i) {
    const std::int64_t slice = (problem.sequences[i].tokens + degree - 1) / degree;
    const std::size_t chosen = choose(groups, slice, problem.token_budget);
    Group& group = groups[chosen];
    if (balance == Balance::kTokens) {
      group.cost += slice;
    } else {
      group.cost += group.tokens == 0 ? costs.opening_share(i, level) : costs.share(i, level);
    }
    group.tokens += slice;
    nodes.push_back({.first_rank = static_cast<std::int32_t>(chosen) * degree, .degree = degree});
  }
  return nodes;
}

Solution static_degree(const Problem& problem, std::int32_t degree, Balance balance) {
  CostTable costs(problem);
  return score(problem, static_nodes(costs, degree, balance));
}

}  // namespace nsp
