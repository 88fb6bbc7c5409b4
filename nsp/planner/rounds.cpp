#include "nsp/planner/rounds.h"

#include <algorithm>

#include "nsp/cost/evaluate.h"

namespace nsp {

std::vector<Solution> plan_hands(const Problem& batch,
                                 const Hands& hands,
                                 const RoundPlanner& plan_round) {
  std::vector<Solution> rounds;
  Problem problem = batch;
  for (const std::vector<Sequence>& hand : hands) {
    if (!hand.empty()) {
      problem.sequences = hand;
      rounds.push_back(plan_round(problem));
    }
  }
  return rounds;
}

std::vector<Solution> plan_rounds(const Problem& batch, const RoundPlanner& plan_round) {
  const std::int64_t tokens = sum_tokens(batch.sequences);
  const std::int64_t most = std::ssize(batch.sequences);
  std::int64_t count = std::min(least_rounds(tokens, batch.world, batch.token_budget), most);
  while (true) {
    std::vector<Solution> rounds = count == 1
                                       ? std::vector{plan_round(batch)}
                                       : plan_hands(batch, deal_evenly(batch, count), plan_round);
    if (all_feasible(rounds) || count >= most) {
      return rounds;
    }
    count = std::min(count + std::max<std::int64_t>(1, count / 8), most);
  }
}

std::int64_t total_load(const std::vector<Solution>& rounds) {
  std::int64_t sum = 0;
  for (const Solution& round : rounds) {
    sum += round.load;
  }
  return sum;
}

bool all_feasible(const std::vector<Solution>& rounds) {
  return std::ranges::all_of(rounds, &Solution::feasible);
}

std::int64_t total_step(const Problem& batch, const std::vector<Solution>& rounds) {
  std::int64_t sum = 0;
  for (const Solution& solution : rounds) {
    const RoundLoad load = evaluate(*batch.model, {.placements = solution.placements}, batch.world);
    sum += batch.model->round_step(load.largest, load.tokens_max(), batch.world);
  }
  return sum;
}

}  // namespace nsp
