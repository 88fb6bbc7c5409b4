// FlexSP (Wang et al., ASPLOS 2025): disjoint groups of different degrees, one micro-batch after
// another.
//
// 1. Sequences sorted by length are cut into M consecutive micro-batches whose largest sum of
//    tokens is least; M runs from the fewest that hold the tokens to that + 4.
// 2. Of each micro-batch at most 16 buckets of like length are made (cut.h), with linear costs.
// 3. Candidates: one degree for all; the MILP by counts at several times (counts.h); where it is
//    small enough, the MILP over single groups (exact.h), begun at the best of those. Sequences of
//    a bucket are dealt to the groups, longest first, each to the least loaded.
// 4. The best candidate on exact costs is improved at fixed groups (group_search.h).
// The M of least load counts.
#pragma once

#include <vector>

#include "nsp/planner/problem.h"

namespace nsp {

// One round a micro-batch. Throws BadInput in a build without a MILP solver.
std::vector<Solution> flexsp(const Problem& batch);

// One micro-batch.
Solution flexsp_round(const Problem& problem);

}  // namespace nsp
