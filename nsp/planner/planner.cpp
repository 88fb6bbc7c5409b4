#include "nsp/planner/planner.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "nsp/cost/evaluate.h"
#include "nsp/plan/make_plan.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/choice.h"
#include "nsp/planner/mark_choice.h"
#include "nsp/planner/request.h"
#include "nsp/planner/schedules.h"
#include "nsp/planner/solve.h"
#include "nsp/sim/best_order.h"

namespace nsp {
namespace {

std::vector<std::vector<Placement>> placements(const std::vector<Solution>& rounds) {
  std::vector<std::vector<Placement>> result;
  for (const Solution& round : rounds) {
    result.push_back(round.placements);
  }
  return result;
}

std::int64_t bound_without_budget(Problem batch) {
  batch.token_budget = 0;
  return lower_bound(batch);
}

// Where the profile's does not divide the world, the last of its hosts is not full. A degree
// divides the world, so it divides their common divisor exactly where it divides the profile's: the
// same nodes lie inside a host.
std::int32_t ranks_per_host(const PlanRequest& request, const Profile& profile) {
  if (request.ranks_per_host > 0) {
    return request.ranks_per_host;
  }
  if (request.world <= profile.ranks_per_host) {
    return request.world;
  }
  return std::gcd(request.world, static_cast<std::int32_t>(profile.ranks_per_host));
}

bool is_checkpointed(const PlanRequest& request) {
  return request.checkpointing || request.byte_budget > 0 || request.host_budget > 0;
}

// A new plan recomputes everything.
void set_marks(Plan& plan,
               const CostModel& model,
               const PlanRequest& request,
               const ModelShape& shape) {
  if ((request.byte_budget == 0 && request.host_budget == 0) || plan.rounds.empty()) {
    return;
  }
  MarkRule rule{.byte_budget = request.byte_budget,
                .token_bytes = saved_token_bytes(shape),
                .host_budget = request.host_budget,
                .output_bytes = output_token_bytes(shape)};
  if (request.mark_order) {
    rule.order = *request.mark_order;
    mark_recompute(plan, model, rule);
  } else {
    mark_by_better_order(plan, model, shape, rule);
  }
  plan.predicted.bytes_max = std::ranges::max(saved_bytes(plan, rule.token_bytes));
}

// Simulated, unless the search has done so, except where every millisecond counts. The other
// planners' levels run whole, as they were published. Borrows all.
ScheduleRule schedule_rule(const StepRules& rules,
                           const PlanRequest& request,
                           const Choice& choice,
                           const std::vector<Solution>& rounds) {
  if (request.effort == "fast") {
    return nullptr;
  }
  return [&, rules](Round& round, std::size_t index) {
    const Schedule& known = rounds[index].schedule;
    if (!known.order.empty()) {
      round.schedule.order = known.order;
      round.schedule.leaf_first = known.leaf_first;
      round.schedule.cuts = known.cuts;
      return;
    }
    if (choice.kind == PlannerKind::kNsp) {
      choose_schedule(rules, round);
    } else {
      set_order(best_orders(*rules.model, round, rules.world).whole, round.schedule);
    }
  };
}

std::string over_budget(const Plan& plan) {
  return "the fullest rank would hold " + std::to_string(plan.predicted.tokens_max) +
         " tokens in a round, token_budget " + std::to_string(plan.token_budget) +
         " allows fewer; raise it to that";
}

PlanResult plan_checked(const PlanRequest& request,
                        const Choice& choice,
                        const ModelShape& shape,
                        const Profile& profile) {
  const PlanSettings settings{.world = request.world,
                              .sp_max = request.sp_max,
                              .ranks_per_host = ranks_per_host(request, profile),
                              .token_budget = token_budget(request),
                              .planner = request.planner,
                              .effort = request.effort,
                              .model_hash = model_hash(shape),
                              .profile_hash = profile_hash(profile)};
  const std::int32_t largest = choice.degree > 0 ? choice.degree : request.sp_max;
  const Kept kept = keep(request, largest, settings.token_budget);
  if (!kept.why_infeasible.empty()) {
    PlanResult none{.plan = make_plan(settings, {}), .why_infeasible = kept.why_infeasible};
    none.plan.feasible = false;
    seal(none.plan);
    return none;
  }
  const CostModel model(shape, profile, settings.ranks_per_host, request.ep);
  const StepRules rules{.model = &model,
                        .shape = &shape,
                        .world = request.world,
                        .checkpointing = is_checkpointed(request)};
  const Problem batch{.model = &model,
                      .world = request.world,
                      .sp_max = request.sp_max,
                      .token_budget = settings.token_budget,
                      .sequences = kept.sequences,
                      .backends = backends_of(request, choice),
                      .checkpointing = rules.checkpointing};
  const std::int64_t bound = lower_bound(batch);
  const std::vector<Solution> rounds = solve(batch, request, choice, shape, bound);
  PlanResult result{.plan = make_plan(settings,
                                      placements(rounds),
                                      kept.dropped,
                                      schedule_rule(rules, request, choice, rounds)),
                    .why_infeasible = ""};
  result.plan.predicted = predicted(evaluate(model, result.plan));
  if (!result.plan.feasible) {
    result.why_infeasible = over_budget(result.plan);
  }
  // Not above the load by a rounding of the two sums either.
  const double load = result.plan.predicted.forward + result.plan.predicted.backward;
  const std::int64_t proven = result.plan.feasible ? bound : bound_without_budget(batch);
  result.plan.bound_seconds = std::min(static_cast<double>(proven) / 1e9, load);
  set_marks(result.plan, model, request, shape);
  return result;
}

}  // namespace

PlanResult plan(const PlanRequest& request, const ModelShape& shape, const Profile& profile) {
  const auto start = std::chrono::steady_clock::now();
  check(shape);
  check(profile);
  check(request, shape, ranks_per_host(request, profile));
  check_world(profile, request.world);
  check_host(request, profile);
  PlanResult result = plan_checked(request, parse_planner(request), shape, profile);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  result.plan.planning_ms = spent.count();
  return result;
}

}  // namespace nsp
