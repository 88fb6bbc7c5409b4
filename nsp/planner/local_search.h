// Local search over complete assignments: anneal_to_mean (annealing.h) over the whole tree.
//
// A trial moves one sequence, swaps two, or empties a nearly empty node (its collectives cost every
// rank below it), into another, its two halves or another way on the same ranks; it starts on a
// rank that is high above the targets.
#pragma once

#include <cstdint>

#include "nsp/base/random.h"
#include "nsp/planner/assignment.h"

namespace nsp {

// `work` bounds the trials (Trial::spent). Leaves the best assignment found in `state`; never a
// worse one than it was given.
void local_search(Assignment& state, Random& random, std::int64_t work);

}  // namespace nsp
