// Dealing a batch to rounds: which sequences share one forward-backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/problem.h"

namespace nsp {

// The sequences of each round, longest first; a hand may be empty.
using Hands = std::vector<std::vector<Sequence>>;

// The fewest rounds that could hold so many tokens; at least 1.
std::int64_t least_rounds(std::int64_t tokens, std::int32_t world, std::int64_t token_budget);

std::int64_t sum_tokens(const std::vector<Sequence>& sequences);

// Longest first, each to the hand of least cost (seconds x ranks at the cheapest degree) that has
// room for its tokens.
Hands deal_evenly(const Problem& batch, std::int64_t rounds);

// Like with like: the shortest sequences, up to `tokens` in all, are the last hand, the next
// shortest the one before, and so on; the first hand takes what is left.
Hands deal_sorted(const Problem& batch, std::int64_t rounds, std::int64_t tokens);

}  // namespace nsp
