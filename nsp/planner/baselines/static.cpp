#include "nsp/planner/baselines/static.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nsp/plan/make_plan.h"
#include "nsp/planner/cost_table.h"
#include "nsp/planner/leaf_queue.h"
#include "nsp/planner/search_state.h"

namespace nsp {

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
  const std::optional<Way> how = static_way(problem, degree);
  if (!how) {
    return {};
  }
  constexpr std::size_t kOnly = 0;
  CostTable costs(problem, {*how});
  const std::int32_t groups = problem.world / degree;
  LeafQueue queue(SearchState(groups, 1), groups);
  std::vector<Placement> placements;
  placements.reserve(problem.sequences.size());
  for (std::size_t i = 0; i < problem.sequences.size(); ++i) {
    const Sequence& sequence = problem.sequences[i];
    const std::int64_t slice = (sequence.tokens + degree - 1) / degree;
    const bool opens = i < static_cast<std::size_t>(groups);  // empty groups are the least loaded
    const std::int64_t cost = balance == Balance::kTokens ? slice
                              : opens                     ? costs.opening_share(i, kOnly)
                                                          : costs.share(i, kOnly);
    const std::int32_t group = queue.place(slice, cost, problem.token_budget);
    placements.push_back(place(sequence.index, sequence.tokens, group * degree, *how));
  }
  return score(problem, std::move(placements));
}

}  // namespace nsp
