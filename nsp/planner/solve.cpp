#include "nsp/planner/solve.h"

#include <algorithm>
#include <utility>

#include "nsp/cost/evaluate.h"
#include "nsp/planner/algorithm1.h"
#include "nsp/planner/baselines/flexsp/flexsp.h"
#include "nsp/planner/baselines/megatron_dcp.h"
#include "nsp/planner/baselines/static.h"
#include "nsp/planner/baselines/two_level.h"
#include "nsp/planner/bound.h"
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
Rounds best_static(const Problem& batch) {
  Rounds best;
  for (const std::int32_t degree : batch.model->allowed_degrees(batch.sp_max)) {
    if ((batch.sequences.front().tokens + degree - 1) / degree > batch.token_budget) {
      continue;
    }
    Rounds rounds = plan_rounds(
        batch, [degree](const Problem& problem) { return static_degree(problem, degree); });
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

std::vector<Node> nodes_of(const Solution& solution) {
  std::vector<Node> nodes;
  for (const Placement& placement : solution.placements) {
    nodes.push_back(placement.node);
  }
  return nodes;
}

// Nanoseconds of the whole step, FSDP traffic of each round included.
std::int64_t step_of(const Problem& batch, const Rounds& rounds) {
  std::int64_t sum = 0;
  for (const Solution& solution : rounds) {
    const RoundLoad load = evaluate(*batch.model, {.placements = solution.placements}, batch.world);
    sum += batch.model->round_step(load.largest, load.tokens_max(), batch.world);
  }
  return sum;
}

std::int64_t bound_of(const Problem& batch) {
  std::vector<std::int64_t> tokens;
  for (const Sequence& sequence : batch.sequences) {
    tokens.push_back(sequence.tokens);
  }
  return lower_bound(*batch.model, tokens, batch.world, batch.sp_max, batch.token_budget);
}

// A second round where one is far from the bound: first a look with little effort at how much goes
// there, then the best with all effort. It must win the layer and the whole step.
void try_split(const Problem& batch, const NspEffort& effort, std::int64_t bound, Rounds& best) {
  if (best.size() != 1 || !best.front().feasible || effort.split_percent == 0 ||
      total_load(best) <= bound + bound / 100 * effort.split_percent) {
    return;
  }
  std::int64_t tokens = 0;
  for (const Sequence& sequence : batch.sequences) {
    tokens += sequence.tokens;
  }
  const auto planner = [](const NspEffort& limits) {
    return [&limits](const Problem& problem) { return nsp_round(problem, limits); };
  };
  const NspEffort little{.targets = 1, .parts = {6}, .skeleton = 30'000, .search = 10'000};
  Rounds seen;
  std::int64_t part = 0;
  for (const int sixteenths : effort.splits) {
    Rounds rounds = plan_split(batch, tokens * sixteenths / 16, planner(little));
    if (!rounds.empty() && (seen.empty() || better(rounds, seen))) {
      seen = std::move(rounds);
      part = sixteenths;
    }
  }
  if (seen.empty() || !better(seen, best)) {
    return;
  }
  keep_better(seen, plan_split(batch, tokens * part / 16, planner(effort)));
  if (step_of(batch, seen) < step_of(batch, best)) {
    best = std::move(seen);
  }
}

// Baselines that take one round are starts; all are rivals: the result is never worse than any. At
// the bound only fewer bytes can be won.
Rounds by_nsp(const Problem& batch, const PlanRequest& request) {
  NspEffort effort = nsp_effort(request.effort);
  if (!effort.baselines) {
    return plan_rounds(batch, [&](const Problem& problem) { return nsp_round(problem, effort); });
  }
  const std::int64_t bound = bound_of(batch);
  Rounds best;
  std::vector<std::vector<Node>> starts;
  const auto optimal = [&] { return all_feasible(best) && total_load(best) <= bound; };
  const auto start_from = [&](Rounds rival) {
    if (rival.size() == 1) {
      starts.push_back(nodes_of(rival.front()));
    }
    keep_better(best, std::move(rival));
  };
  start_from(by_algorithm1(batch, request));
  if (!optimal()) {
    start_from(best_static(batch));
    start_from(plan_rounds(batch, two_level));
  } else if (best.size() == 1) {
    effort.targets = 0;
    effort.parts.clear();
  }
  Rounds own = plan_rounds(batch, [&](const Problem& problem) {
    const bool whole = problem.sequences.size() == batch.sequences.size();
    return nsp_round(problem, effort, whole ? starts : decltype(starts){});
  });
  if (!better(best, own)) {  // at an equal load it moves fewer bytes
    best = std::move(own);
  }
  try_split(batch, effort, bound, best);
  if (!optimal()) {
    keep_better(best, megatron_dcp(batch, all_feasible(best) ? total_load(best) : INT64_MAX));
  }
  return best;
}

// Started from the best static plan too: its rounds need not be cuts of the sorted sequences.
Rounds by_flexsp(const Problem& batch) {
  Rounds best = flexsp(batch);
  keep_better(best, best_static(batch));
  return best;
}

}  // namespace

std::vector<Solution> solve(const Problem& batch,
                            const PlanRequest& request,
                            const Choice& choice) {
  if (batch.sequences.empty()) {
    return {};
  }
  switch (choice.kind) {
    case PlannerKind::kNsp:
      return by_nsp(batch, request);
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
    return best_static(batch);
  }
  return plan_rounds(batch,
                     [&](const Problem& problem) { return static_degree(problem, choice.degree); });
}

}  // namespace nsp
