#include "nsp/planner/baselines/static.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nsp/plan/make_plan.h"
#include "nsp/planner/cost_table.h"

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

std::optional<Way> static_way(const Problem& problem, std::int32_t degree) {
  std::optional<Way> found;
  for (const Way& way : problem.model->allowed_ways(degree, problem.backends)) {
    if (way.degree == degree) {
      found = way;  // usp comes after ulysses
    }
  }
  return found;
}

Solution static_degree(const Problem& problem, std::int32_t degree, Balance balance) {
  CostTable costs(problem);
  const std::optional<Way> how = static_way(problem, degree);
  if (!how) {
    return {};
  }
  const auto way = static_cast<std::size_t>(std::ranges::find(costs.ways(), *how, &TableWay::way) -
                                            costs.ways().begin());
  std::vector<Group> groups(static_cast<std::size_t>(problem.world / degree));
  std::vector<Placement> placements;
  placements.reserve(problem.sequences.size());
  for (std::size_t i = 0; i < problem.sequences.size(); ++i) {
    const std::int64_t slice = (problem.sequences[i].tokens + degree - 1) / degree;
    const std::size_t chosen = choose(groups, slice, problem.token_budget);
    Group& group = groups[chosen];
    if (balance == Balance::kTokens) {
      group.cost += slice;
    } else {
      group.cost += group.tokens == 0 ? costs.opening_share(i, way) : costs.share(i, way);
    }
    group.tokens += slice;
    placements.push_back(place(problem.sequences[i].index,
                               problem.sequences[i].tokens,
                               static_cast<std::int32_t>(chosen) * degree,
                               *how));
  }
  return score(problem, std::move(placements));
}

}  // namespace nsp
