// NSP-2L of arXiv 2609.22755, section 6: two degrees only, 1 and sp_max.
#pragma once

#include <vector>

#include "nsp/planner/cost_table.h"

namespace nsp {

// The k longest sequences go to the trees' roots, longest first, each to the least-loaded tree; the
// rest to the leaves in the same way. A sequence that no node of its degree holds goes to the other
// degree if that holds it. k runs over everything that no leaf holds plus 0, 1, 2, 3, 4, 6, 8, 12,
// 16, ... and ends when four values in a row have not improved; the best load counts.
std::vector<Node> two_level_nodes(CostTable& costs);

Solution two_level(const Problem& problem);

}  // namespace nsp
