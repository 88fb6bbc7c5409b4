#include "nsp/planner/solve.h"

#include <algorithm>
#include <utility>

#include "nsp/planner/algorithm1.h"
#include "nsp/planner/baselines/flexsp/flexsp.h"
#include "nsp/planner/baselines/megatron_dcp.h"
#include "nsp/planner/baselines/static.h"
#include "nsp/planner/baselines/two_level.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/joint_rounds.h"
#include "nsp/planner/nsp.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

using Rounds = std::vector<Solution>;

// Feasible first; then the smaller sum of loads.
bool better(const Rounds& a, const Rounds& b) {
  if (all_feasible(a) != all_feasible(b)) {
    return all_feasible(a);
  }
  return total_load(a) < total_load(b);
}

void keep_better(Rounds& best, Rounds other) {
  if (!other.empty() && (best.empty() || better(other, best))) {
    best = std::move(other);
  }
}

// Static with the degree of least load among those that hold every sequence.
Rounds best_static(const Problem& batch, Balance balance) {
  Rounds best;
  for (const std::int32_t degree : degrees(batch.sp_max)) {
    if (!static_way(batch, degree) ||
        (batch.sequences.front().tokens + degree - 1) / degree > batch.token_budget) {
      continue;
    }
    Rounds rounds = plan_rounds(
        batch, [&](const Problem& problem) { return static_degree(problem, degree, balance); });
    if (best.empty() || total_load(rounds) < total_load(best)) {
      best = std::move(rounds);
    }
  }
  return best;
}

Rounds by_algorithm1(const Problem& batch, const PlanRequest& request) {
  const Algorithm1Options options{
      .prefix = request.prefix, .beam = request.beam, .monotone = request.monotone};
  return plan_rounds(batch, [&](const Problem& problem) { return algorithm1(problem, options); });
}

// More rounds than the budget asks for, where the plan is far from the bound: must win the layer
// and the whole step.
void try_more_rounds(const Problem& batch,
                     const NspEffort& effort,
                     std::int64_t bound,
                     Rounds& best) {
  if (best.size() != 1 || !best.front().feasible || effort.split_percent == 0 ||
      total_load(best) <= bound + bound / 100 * effort.split_percent) {
    return;
  }
  NspEffort just_two = effort;
  just_two.more_rounds = 0;
  just_two.trials /= 2;
  Rounds more = plan_jointly(batch, 2, just_two);
  if (!more.empty() && better(more, best) && total_step(batch, more) < total_step(batch, best)) {
    best = std::move(more);
  }
}

// One round, if it keeps the budget, else as many as pay.
Rounds own_rounds(const Problem& batch,
                  const NspEffort& effort,
                  std::int64_t bound,
                  const std::vector<std::vector<Placement>>& starts) {
  const std::int64_t fewest =
      least_rounds(sum_tokens(batch.sequences), batch.world, batch.token_budget);
  if (fewest == 1) {
    NspEffort whole = effort;
    whole.bound = bound;
    Rounds one = {nsp_round(batch, whole, starts)};
    if (all_feasible(one)) {
      return one;
    }
  }
  Rounds joint = plan_jointly(batch, std::max<std::int64_t>(2, fewest), effort);
  if (!joint.empty()) {
    return joint;
  }
  return plan_rounds(batch, [&](const Problem& problem) { return nsp_round(problem, effort); });
}

// Baselines that take one round are starts; all are rivals: the result is never worse than any. At
// the bound only fewer bytes can be won.
Rounds by_ulysses(const Problem& batch, const PlanRequest& request, std::int64_t bound) {
  NspEffort effort = nsp_effort(request.effort);
  if (!effort.baselines) {
    return own_rounds(batch, effort, 0, {});
  }
  Rounds best;
  std::vector<std::vector<Placement>> starts;
  const auto optimal = [&] { return all_feasible(best) && total_load(best) <= bound; };
  const auto start_from = [&](Rounds rival) {
    if (rival.size() == 1) {
      starts.push_back(rival.front().placements);
    }
    keep_better(best, std::move(rival));
  };
  start_from(by_algorithm1(batch, request));
  if (!optimal()) {
    start_from(best_static(batch, Balance::kCost));
    keep_better(best, best_static(batch, Balance::kTokens));
    start_from(plan_rounds(batch, two_level));
  } else if (best.size() == 1) {
    effort.targets = 0;
    effort.parts.clear();
  }
  Rounds own = own_rounds(batch, effort, bound, starts);
  if (!better(best, own)) {  // at an equal load it moves fewer bytes
    best = std::move(own);
  }
  try_more_rounds(batch, effort, bound, best);
  if (!optimal()) {
    keep_better(best, megatron_dcp(batch, all_feasible(best) ? total_load(best) : INT64_MAX));
  }
  return best;
}

// Started from the best static plan too: its rounds need not be cuts of the sorted sequences.
Rounds by_flexsp(const Problem& batch) {
  Rounds best = flexsp(batch);
  keep_better(best, best_static(batch, Balance::kCost));
  return best;
}

// Other backends than ulysses: its plan is a start where it is allowed, so more ways are never
// worse.
Rounds by_nsp(const Problem& batch, const PlanRequest& request, std::int64_t bound) {
  if (batch.backends == std::vector{Backend::kUlysses}) {
    return by_ulysses(batch, request, bound);
  }
  const NspEffort effort = nsp_effort(request.effort);
  Rounds best;
  std::vector<std::vector<Placement>> starts;
  Problem heads = batch;
  heads.backends = {Backend::kUlysses};
  heads.sp_max = batch.model->allowed_degrees(batch.sp_max).back();
  const bool fits = batch.sequences.front().tokens <= heads.sp_max * batch.token_budget;
  if (fits && std::ranges::count(batch.backends, Backend::kUlysses) > 0) {
    best = by_ulysses(heads, request, lower_bound(heads));
    if (best.size() == 1) {
      starts.push_back(best.front().placements);
    }
  }
  Rounds own = own_rounds(batch, effort, bound, starts);
  if (best.empty() || !better(best, own)) {
    best = std::move(own);
  }
  Problem usp = batch;  // what static-usp may use
  std::erase_if(usp.backends, [](Backend backend) {
    return backend != Backend::kUlysses && backend != Backend::kUspRing;
  });
  if (!usp.backends.empty()) {
    keep_better(best, best_static(usp, Balance::kCost));
  }
  try_more_rounds(batch, effort, bound, best);
  return best;
}

}  // namespace

std::vector<Solution> solve(const Problem& batch,
                            const PlanRequest& request,
                            const Choice& choice,
                            std::int64_t bound) {
  if (batch.sequences.empty()) {
    return {};
  }
  switch (choice.kind) {
    case PlannerKind::kNsp:
      return by_nsp(batch, request, bound);
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
