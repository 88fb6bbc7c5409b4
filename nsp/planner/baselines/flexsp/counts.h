// FlexSP's program by counts: how many groups of each degree, and how many sequences of each bucket
// run at each degree, so that all groups end within a given time.
//
// Groups of equal degree are interchangeable, which makes the program over single groups (exact.h)
// hard: the same solution stands there thousands of times. Here each stands once. What is lost,
// that sequences are whole and groups are filled one by one, comes back as inequalities for those
// that fill more than a half, a third or a quarter of a group, and when the result is dealt.
#pragma once

#include <cstdint>
#include <optional>

#include "nsp/planner/baselines/flexsp/partition.h"

namespace nsp {

// The classes are the degrees. None when the ranks do not suffice within `time` nanoseconds, or no
// solution was found within the limits. Throws BadInput in a build without a MILP solver.
std::optional<Partition> partition_by_counts(const LinearCosts& linear, double time);

}  // namespace nsp
