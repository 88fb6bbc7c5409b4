// Between the command line and the planner.
#pragma once

#include "nsp/cli/commands.h"
#include "nsp/planner/planner.h"

namespace nsp {

// All but the lengths and the planner's name.
PlanRequest request_of(const PlanningOptions& options);

}  // namespace nsp
