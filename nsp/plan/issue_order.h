// The issue order: the one order, equal on all ranks, in which the phases of a round's levels, or
// of the waves of those that are cut, are issued. Leaves that run first (Schedule::leaf_first) are
// issued before all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

// Degrees above 1 that some placement of the round uses, root to leaf.
std::vector<std::int32_t> exchanged_degrees(const Round& round);

// Communication first: every prologue (root to leaf), leaf compute, then each level's compute and
// epilogue; of a level that the schedule cuts the short wave first. With asynchronous collectives
// leaf work hides the first prologue, and each epilogue travels behind the next level's compute.
std::vector<Issue> default_order(const Round& round);

// Fills round.schedule: default order, no leaf part before the first level, no cuts, collectives
// everywhere.
void set_default_schedule(Round& round, std::int32_t world);

// Empty when `order` issues the phases of each level, or of each of its waves under the round's
// cuts, exactly once and in order; otherwise what is wrong.
std::string find_order_fault(const Round& round, const std::vector<Issue>& order);

}  // namespace nsp
