// A proven lower bound of the load of every plan that keeps the token budget.
//
// Load = max_p fwd + max_p bwd >= mean_p (fwd + bwd), and a launch never takes less than the sum of
// its works. So no plan beats the mean over the ranks of each sequence at its cheapest fitting
// degree; nor the dearest single sequence, alone at its best degree. Rounds add up, so both hold
// for any number of rounds.
#pragma once

#include <cstdint>
#include <span>

#include "nsp/cost/cost_model.h"

namespace nsp {

// Nanoseconds of one layer; 0 for no sequences. token_budget 0: no budget.
std::int64_t lower_bound(const CostModel& model,
                         std::span<const std::int64_t> tokens,
                         std::int32_t world,
                         std::int32_t sp_max,
                         std::int64_t token_budget);

}  // namespace nsp
