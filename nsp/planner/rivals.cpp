#include "nsp/planner/rivals.h"

#include <utility>

#include "nsp/planner/algorithm1.h"
#include "nsp/planner/rounds.h"

namespace nsp {

std::vector<Solution> best_static(const Problem& batch, Balance balance) {
  std::vector<Solution> best;
  for (const std::int32_t degree : degrees(batch.sp_max)) {
    if (!static_way(batch, degree) ||
        (batch.sequences.front().tokens + degree - 1) / degree > batch.token_budget) {
      continue;
    }
    std::vector<Solution> rounds = plan_rounds(
        batch, [&](const Problem& problem) { return static_degree(problem, degree, balance); });
    if (best.empty() || total_load(rounds) < total_load(best)) {
      best = std::move(rounds);
    }
  }
  return best;
}

std::vector<Solution> by_algorithm1(const Problem& batch, const PlanRequest& request) {
  const Algorithm1Options options{
      .prefix = request.prefix, .beam = request.beam, .monotone = request.monotone};
  return plan_rounds(batch, [&](const Problem& problem) { return algorithm1(problem, options); });
}

bool better(const std::vector<Solution>& a, const std::vector<Solution>& b) {
  if (all_feasible(a) != all_feasible(b)) {
    return all_feasible(a);
  }
  return total_load(a) < total_load(b);
}

}  // namespace nsp
