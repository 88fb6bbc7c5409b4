#include "nsp/planner/nsp_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nsp/planner/baselines/megatron_dcp.h"
#include "nsp/planner/baselines/two_level.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/finalists.h"
#include "nsp/planner/joint_rounds.h"
#include "nsp/planner/nsp.h"
#include "nsp/planner/rivals.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

using Rounds = std::vector<Solution>;

// Simulating a plan takes as long as its ranks and sequences: large batches afford the schedule of
// one.
NspEffort effort_for(const Problem& batch, const std::string& name) {
  NspEffort effort = nsp_effort(name);
  if (std::ssize(batch.sequences) * batch.world > (std::int64_t{1} << 22)) {
    effort.finalists = effort.finalists > 4 ? 2 : 1;
  }
  return effort;
}

// More rounds than the budget asks for, where the plan is far from the bound: must win the layer
// and the whole step.
void try_more_rounds(const Problem& batch,
                     const NspEffort& effort,
                     std::int64_t bound,
                     Finalists& finalists) {
  const Rounds* const best = finalists.least_load_plan();
  if (best == nullptr || best->size() != 1 || !best->front().feasible ||
      effort.split_percent == 0 ||
      total_load(*best) <= bound + bound / 100 * effort.split_percent) {
    return;
  }
  NspEffort just_two = effort;
  just_two.more_rounds = 0;
  just_two.trials /= 2;
  just_two.skeleton /= 2;
  just_two.search /= 2;
  Rounds more = plan_jointly(batch, 2, just_two);
  if (!more.empty() && better(more, *best) && total_step(batch, more) < total_step(batch, *best)) {
    finalists.offer(std::move(more));
  }
}

// One round, if it keeps the budget, else as many as pay.
void offer_own_rounds(const Problem& batch,
                      const NspEffort& effort,
                      std::int64_t bound,
                      const std::vector<std::vector<Placement>>& starts,
                      Finalists& finalists) {
  const std::int64_t fewest =
      least_rounds(sum_tokens(batch.sequences), batch.world, batch.token_budget);
  if (fewest == 1) {
    NspEffort whole = effort;
    whole.bound = bound;
    std::vector<Solution> found = nsp_finalists(batch, whole, starts, effort.finalists);
    if (found.front().feasible) {
      for (Solution& solution : found) {
        finalists.offer({std::move(solution)});
      }
      return;
    }
  }
  Rounds joint = plan_jointly(batch, std::max<std::int64_t>(2, fewest), effort);
  if (joint.empty()) {
    joint = plan_rounds(batch, [&](const Problem& problem) { return nsp_round(problem, effort); });
  }
  finalists.offer(std::move(joint));
}

// Baselines that take one round are starts; all are rivals: nothing of a higher load than one's is
// taken. At the bound only fewer bytes can be won.
Rounds by_ulysses(const Problem& batch,
                  const PlanRequest& request,
                  const ModelShape& shape,
                  std::int64_t bound) {
  NspEffort effort = effort_for(batch, request.effort);
  Finalists finalists(batch, shape, effort.finalists);
  if (!effort.baselines) {
    offer_own_rounds(batch, effort, 0, {}, finalists);
    return finalists.choose();
  }
  std::vector<std::vector<Placement>> starts;
  const auto start_from = [&](Rounds rival) {
    if (rival.size() == 1) {
      starts.push_back(rival.front().placements);
    }
    finalists.offer_rival(std::move(rival));
  };
  start_from(by_algorithm1(batch, request));
  if (finalists.least_load() > bound) {
    start_from(best_static(batch, Balance::kCost));
    finalists.offer_rival(best_static(batch, Balance::kTokens));
    start_from(plan_rounds(batch, two_level));
  } else if (finalists.least_load_plan()->size() == 1) {
    effort.targets = 0;
    effort.parts.clear();
  }
  offer_own_rounds(batch, effort, bound, starts, finalists);
  try_more_rounds(batch, effort, bound, finalists);
  if (finalists.least_load() <= bound) {
    finalists.limit(bound);
    return finalists.choose();
  }
  const Rounds& chosen = finalists.choose();  // a low load to give up above
  finalists.offer_rival(megatron_dcp(batch, all_feasible(chosen) ? total_load(chosen) : INT64_MAX));
  return finalists.choose();
}

// Also where others are allowed and have no way: usp inside one host.
bool only_ulysses(const Problem& batch) {
  constexpr Backend kOne[] = {Backend::kUlysses};
  return batch.model->allowed_ways(batch.sp_max, batch.backends) ==
         batch.model->allowed_ways(batch.sp_max, kOne);
}

// What a request for fewer ways would search: without gather and ring, if something is left; then
// ulysses alone. Its plan is a start, and a rival whose step is played: more ways are not worse.
std::vector<Backend> narrower(const std::vector<Backend>& backends) {
  std::vector<Backend> fewer = backends;
  std::erase_if(fewer, [](Backend b) { return b == Backend::kGather || b == Backend::kRing; });
  if (!fewer.empty() && fewer.size() < backends.size()) {
    return fewer;
  }
  const bool ulysses = std::ranges::count(backends, Backend::kUlysses) > 0;
  return ulysses ? std::vector{Backend::kUlysses} : std::vector<Backend>{};
}

// The batch with these backends, up to the largest degree that they have; nullopt where it does not
// hold the longest sequence.
std::optional<Problem> with_backends(const Problem& batch, std::vector<Backend> backends) {
  Problem problem = batch;
  problem.backends = std::move(backends);
  const auto ways = batch.model->allowed_ways(batch.sp_max, problem.backends);
  problem.sp_max = ways.back().degree;
  if (batch.sequences.front().tokens > problem.sp_max * batch.token_budget) {
    return std::nullopt;
  }
  return problem;
}

Rounds search(const Problem& batch,
              const PlanRequest& request,
              const ModelShape& shape,
              std::int64_t bound) {
  if (only_ulysses(batch)) {
    return by_ulysses(batch, request, shape, bound);
  }
  const NspEffort effort = effort_for(batch, request.effort);
  Finalists finalists(batch, shape, effort.finalists);
  std::vector<std::vector<Placement>> starts;
  const auto fewer = narrower(batch.backends);
  const auto small = fewer.empty() ? std::nullopt : with_backends(batch, fewer);
  if (small) {
    Rounds rival = nsp_plan(*small, request, shape, lower_bound(*small));
    if (rival.size() == 1) {
      starts.push_back(rival.front().placements);
    }
    finalists.offer_rival(std::move(rival), true);
  }
  Problem usp = batch;  // what static-usp may use
  std::erase_if(usp.backends, [](Backend backend) {
    return backend != Backend::kUlysses && backend != Backend::kUspRing;
  });
  if (!usp.backends.empty()) {
    finalists.offer_rival(best_static(usp, Balance::kCost));
  }
  offer_own_rounds(batch, effort, bound, starts, finalists);
  try_more_rounds(batch, effort, bound, finalists);
  return finalists.choose();
}

}  // namespace

// More work finds lower loads, which are not always faster steps: `default` has a say in
// `thorough`.
Rounds nsp_plan(const Problem& batch,
                const PlanRequest& request,
                const ModelShape& shape,
                std::int64_t bound) {
  Rounds found = search(batch, request, shape, bound);
  if (request.effort != "thorough") {
    return found;
  }
  PlanRequest less = request;
  less.effort = "default";
  Finalists both(batch, shape, 2);
  both.offer(std::move(found));
  both.offer(search(batch, less, shape, bound));
  return both.choose();
}

}  // namespace nsp
