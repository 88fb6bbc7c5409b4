#include "nsp/planner/solve.h"

#include "nsp/planner/baselines/flexsp/flexsp.h"
#include "nsp/planner/baselines/megatron_dcp.h"
#include "nsp/planner/baselines/static.h"
#include "nsp/planner/baselines/two_level.h"
#include "nsp/planner/nsp_plan.h"
#include "nsp/planner/rivals.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

// Started from the best static plan too: its rounds need not be cuts of the sorted sequences.
std::vector<Solution> by_flexsp(const Problem& batch) {
  std::vector<Solution> best = flexsp(batch);
  std::vector<Solution> other = best_static(batch, Balance::kCost);
  return best.empty() || (!other.empty() && better(other, best)) ? other : best;
}

}  // namespace

std::vector<Solution> solve(const Problem& batch,
                            const PlanRequest& request,
                            const Choice& choice,
                            const ModelShape& shape,
                            std::int64_t bound) {
  if (batch.sequences.empty()) {
    return {};
  }
  switch (choice.kind) {
    case PlannerKind::kNsp:
      return nsp_plan(batch, request, shape, bound);
    case PlannerKind::kAlgorithm1:
      return by_algorithm1(batch, request);
    case PlannerKind::kTwoLevel:
      return plan_rounds(batch, two_level);
    case PlannerKind::kMegatron:
      return megatron_dcp(batch);
    case PlannerKind::kFlexSp:
      return by_flexsp(batch);
    case PlannerKind::kStatic:
      break;
  }
  if (choice.degree == 0) {
    return best_static(batch, choice.balance);
  }
  return plan_rounds(batch, [&](const Problem& problem) {
    return static_degree(problem, choice.degree, choice.balance);
  });
}

}  // namespace nsp
