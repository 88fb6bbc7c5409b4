// Greedy start plans: each sequence at the smallest degree that keeps its ranks under a target.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/cost_table.h"

namespace nsp {

// Longest first. Of the smallest degree with a node whose ranks stay within `target` nanoseconds
// (forward + backward) and the token budget, the least-loaded node; where no degree has one, the
// node with the smallest resulting load that keeps the budget, else the one with the fewest tokens.
std::vector<Placement> target_greedy(CostTable& costs, std::int64_t target);

}  // namespace nsp
