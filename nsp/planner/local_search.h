// Local search over complete assignments: threshold acceptance on the assignment's energy.
//
// A trial moves one sequence, swaps two, or empties a nearly empty node (its collectives cost every
// rank below it), into another, its two halves or another way on the same ranks; it starts on a
// rank that is high above the targets. It stays if the energy rises by less than a random part of a
// threshold that falls to zero: simulated annealing without floating point. The targets lie
// half-way between the mean rank's seconds and the largest, and follow both. In the second half the
// tokens beyond the budget may not grow any more.
#pragma once

#include <cstdint>

#include "nsp/base/random.h"
#include "nsp/planner/assignment.h"

namespace nsp {

// What decides between assignments: tokens beyond the budget, then load, then exchanged bytes.
struct Quality {
  std::int64_t excess = 0;
  std::int64_t load = 0;
  std::int64_t traffic = 0;  // nanoseconds x ranks

  auto operator<=>(const Quality&) const = default;
};

Quality quality(const Assignment& state);

// `work` bounds the trials (Trial::spent). Leaves the best assignment found in `state`; never a
// worse one than it was given.
void local_search(Assignment& state, Random& random, std::int64_t work);

}  // namespace nsp
