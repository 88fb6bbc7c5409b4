// FlexSP's MILP (ASPLOS 2025) of one micro-batch, over candidate groups one by one.
//
//   minimise T
//   T >= fixed + sum_k time[k] A[k,p]       for each candidate group p, as far as it is used
//   sum_p A[k,p] = count[k]                 every sequence in one group
//   sum_k tokens[k] A[k,p] <= budget m[p]   unused groups hold none, used ones keep the budget
//   sum_p degree[p] m[p] <= world           disjoint; ranks left over idle
//
// with integers A and binary m; a bucket's sequences never go below their least degree. Candidates:
// as many groups of each degree as the world has room for. Groups of one degree are ordered (a
// later one is used only if the earlier one is, and takes no more of the longest bucket that may go
// there), which removes most copies of a solution.
#pragma once

#include <cstdint>
#include <optional>

#include "nsp/planner/baselines/flexsp/partition.h"

namespace nsp {

// Each group is its own class. `start`: where the search begins; groups that are their own classes.
// `nodes`: of branch and bound. None when no solution was found. Throws BadInput in a build without
// a MILP solver.
std::optional<Partition> exact_partition(const LinearCosts& linear,
                                         const Partition& start,
                                         std::int64_t nodes);

}  // namespace nsp
