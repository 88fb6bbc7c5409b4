// Where the long sequences go: annealing while the short ones are a fluid.
//
// Balance is decided by the long sequences, but moving one of them asks for many short ones to
// move, so a search over all sequences stands before high walls. Here the short ones are a fluid
// (tokens, with their mean seconds a token) that fills each rank up to a common level or its token
// budget: a change of the long ones is judged at once by the room that it leaves for the fluid.
// When the room is enough, the level sinks. At last the short ones are put in, longest first, each
// where most room is left.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nsp/base/random.h"
#include "nsp/planner/assignment.h"

namespace nsp {

struct SkeletonLimits {
  std::int64_t work = 0;    // bounds the trials (Trial::spent)
  std::size_t longest = 0;  // sequences that are not fluid
};

// Starts from `state`, a complete assignment, and replaces it; it may be worse, above all where
// short sequences are few.
void anneal_skeleton(Assignment& state,
                     CostTable& costs,
                     Random& random,
                     const SkeletonLimits& limits);

}  // namespace nsp
