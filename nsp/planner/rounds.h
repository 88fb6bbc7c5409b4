// Several rounds: a batch that one forward-backward pass cannot hold under the token budget.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nsp/planner/problem.h"

namespace nsp {

using RoundPlanner = std::function<Solution(const Problem&)>;

// The fewest rounds that could hold so many tokens; at least 1.
std::int64_t least_rounds(std::int64_t tokens, std::int32_t world, std::int64_t token_budget);

// Deals the sequences into the fewest rounds that `plan_round` can plan: longest first, each to the
// round of least cost that keeps the tokens. Tries more rounds until all are feasible or each holds
// one sequence; so the result is feasible whenever each sequence alone is.
std::vector<Solution> plan_rounds(const Problem& batch, const RoundPlanner& plan_round);

// Two rounds: the shortest sequences, up to `tokens` in all, make the second. Where a long sequence
// alone sets the pace of its ranks, and the token budget stops the other ranks from taking the rest
// meanwhile, the sum of two such rounds is less than one. Empty when a round would be empty.
std::vector<Solution> plan_split(const Problem& batch,
                                 std::int64_t tokens,
                                 const RoundPlanner& plan_round);

// Sum of the rounds' loads, and whether all are feasible.
std::int64_t total_load(const std::vector<Solution>& rounds);
bool all_feasible(const std::vector<Solution>& rounds);

}  // namespace nsp
