// Between the command line and the planner.
#pragma once

#include <string>

#include "nsp/cli/commands.h"
#include "nsp/planner/planner.h"

namespace nsp {

// All but the lengths and the planner's name.
PlanRequest request_of(const PlanningOptions& options);

// Of a plan that does not fit: what is too large, and the remedy.
std::string why_infeasible(const PlanResult& result);

}  // namespace nsp
