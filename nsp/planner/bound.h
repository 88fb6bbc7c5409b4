// A proven lower bound of the load of every plan that keeps the token budget.
//
// Load L = max_p fwd + max_p bwd is at least the forward + backward of any rank, so in a plan of
// load L every sequence runs at a degree that holds its tokens and at which it alone takes no more
// than L. A launch never takes less than the sum of its works, and a node whose sequences fill a
// part of L pays its fixed seconds: at least that part of them is charged to its sequences. So the
// sum over the sequences of seconds x ranks, each at its cheapest degree of those, is at most
// world x L. Rounds add up, so this holds for any number of them. With a token budget,
// bound_budget.h rules out more. The bound is the least L that is not ruled out.
// With expert parallelism a rank's pass is at least its own attention and dense seconds before the
// exchange, plus the experts' seconds of its group's mean tokens. Summed over the world, the waits
// left out, the means are the tokens: the same area. Alone on its node, a sequence of degree d has
// its group hold at least L / max(d, ep) tokens a rank. The token budget's proof is left out then.
#pragma once

#include <cstdint>
#include <span>

#include "nsp/cost/cost_model.h"
#include "nsp/planner/problem.h"

namespace nsp {

inline constexpr Backend kUlyssesOnly[] = {Backend::kUlysses};

// Nanoseconds of one layer; 0 for no sequences. token_budget 0: no budget. `backends`: the plans'
// ways beside local.
std::int64_t lower_bound(const CostModel& model,
                         std::span<const std::int64_t> tokens,
                         std::int32_t world,
                         std::int32_t sp_max,
                         std::int64_t token_budget,
                         std::span<const Backend> backends = kUlyssesOnly);

// Of the plans of this batch. Its token_budget may be 0 here.
std::int64_t lower_bound(const Problem& batch);

}  // namespace nsp
