// Local search over partitions, beyond the paper: two groups of equal degree become one of twice as
// many ranks, or a group becomes two halves, each time followed by group_search.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/assignment.h"

namespace nsp {

// Disjoint nodes that cover the ranks, and one of them for each sequence.
struct Grouping {
  std::vector<Node> groups;  // largest first, side by side
  std::vector<Node> placed;
  Quality quality;
};

// One degree for all, as static_degree places them; `quality` is left 0.
Grouping one_degree(const Problem& problem, std::int32_t degree);

// At fixed groups: group_search from a fixed seed.
Grouping improved(Assignment& state, const Grouping& start, std::int64_t work);

// Takes the best neighbour while it is better, at most `steps` times; `work` for the group_search
// of each. Borrows the state and leaves anything in it.
Grouping regroup(Assignment& state, Grouping start, int steps, std::int64_t work);

}  // namespace nsp
