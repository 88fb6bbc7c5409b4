// The whole plan of planner nsp: rivals as starts, own search, more rounds where they pay, and the
// simulator's choice among the finalists.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/planner.h"
#include "nsp/planner/problem.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// A solution a round. `shape`: the model's; `bound`: lower_bound(batch).
std::vector<Solution> nsp_plan(const Problem& batch,
                               const PlanRequest& request,
                               const ModelShape& shape,
                               std::int64_t bound);

}  // namespace nsp
