// Several rounds planned together: the sum of their steps decides how many there are and which
// sequences share one.
//
// 1. For each number of rounds from the fewest on: deals to start from (evenly; like with like),
//    improved by moves and swaps under the estimate (improve_deal).
// 2. The best few of each start are planned with a third of the effort: the estimate hardly sees
//    how well few long sequences pack.
// 3. The best of these is planned with all effort. Every rank has the same rounds by construction.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/nsp.h"
#include "nsp/planner/rounds.h"

namespace nsp {

// `fewest` rounds or a few more. Empty when no deal can be planned within the budget, or when one
// round is all that the batch fills.
std::vector<Solution> plan_jointly(const Problem& batch,
                                   std::int64_t fewest,
                                   const NspEffort& effort);

}  // namespace nsp
