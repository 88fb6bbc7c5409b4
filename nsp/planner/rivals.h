// What planner nsp is measured against on every batch, as it plans and as requests name it.
#pragma once

#include <vector>

#include "nsp/planner/baselines/static.h"
#include "nsp/planner/planner.h"
#include "nsp/planner/problem.h"

namespace nsp {

// Static with the degree of least load among those that hold every sequence.
std::vector<Solution> best_static(const Problem& batch, Balance balance);

std::vector<Solution> by_algorithm1(const Problem& batch, const PlanRequest& request);

// Feasible first; then the smaller sum of loads.
bool better(const std::vector<Solution>& a, const std::vector<Solution>& b);

}  // namespace nsp
