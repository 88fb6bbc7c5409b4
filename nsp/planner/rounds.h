// Several rounds: a batch that one forward-backward pass cannot hold under the token budget.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nsp/planner/deal.h"
#include "nsp/planner/problem.h"

namespace nsp {

using RoundPlanner = std::function<Solution(const Problem&)>;

// Plans each hand that holds a sequence.
std::vector<Solution> plan_hands(const Problem& batch,
                                 const Hands& hands,
                                 const RoundPlanner& plan_round);

// Deals evenly into the fewest rounds that `plan_round` can plan. Tries more rounds until all are
// feasible or each holds one sequence; so the result is feasible whenever each sequence alone is.
std::vector<Solution> plan_rounds(const Problem& batch, const RoundPlanner& plan_round);

// Sum of the rounds' loads, and whether all are feasible.
std::int64_t total_load(const std::vector<Solution>& rounds);
bool all_feasible(const std::vector<Solution>& rounds);
// Nanoseconds of the whole step, FSDP traffic of each round included.
std::int64_t total_step(const Problem& batch, const std::vector<Solution>& rounds);

}  // namespace nsp
