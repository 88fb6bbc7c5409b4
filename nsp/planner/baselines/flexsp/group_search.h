// Local search at fixed disjoint groups, on exact costs: beyond the paper, so that the baseline
// does not lose by its linear costs, its buckets or an unfinished MILP.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/planner/assignment.h"

namespace nsp {

// Moves a sequence to another group or swaps two; anneal_to_mean (annealing.h), cooled
// faster. Every sequence must be on one of `groups`. `work` bounds the trials (Trial::spent).
// Leaves the best assignment found in `state`, never a worse one than it was given.
void group_search(Assignment& state,
                  const std::vector<Assignment::Id>& groups,
                  Random& random,
                  std::int64_t work);

}  // namespace nsp
