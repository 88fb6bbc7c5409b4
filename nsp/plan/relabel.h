// Any laminar schedule is a tree plan after renaming its workers (arXiv 2609.22755, appendix B).
//
// Jobs run on groups of workers; each group's size is a power of two, and any two groups are
// disjoint or one holds the other. Then workers can be renamed to ranks so that every group becomes
// an aligned node: top down, the largest groups inside a group and its left-over single workers
// have power-of-two sizes that sum to its size, so sorted by size, largest first, they tile it
// aligned. Every rank has the jobs of its worker: same loads, same times. {0, 1} and {1, 2} cannot
// both be aligned.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/tree.h"

namespace nsp {

struct Relabelling {
  std::vector<std::int32_t> rank_of;  // by worker
  std::vector<Node> nodes;            // by group
};

// groups[g]: the workers of a group, in any order; the same group may come again. Throws BadInput:
// an empty group or one whose size is no power of two, a worker twice in a group or outside the
// world, two groups that overlap in part.
Relabelling relabel(std::int32_t world, const std::vector<std::vector<std::int32_t>>& groups);

}  // namespace nsp
