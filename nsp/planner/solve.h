// Which planner solves a batch: the rounds of each one's plan.
#pragma once

#include <vector>

#include "nsp/planner/choice.h"
#include "nsp/planner/problem.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// The batch's sequences dealt to rounds and placed. Empty for an empty batch, or where the planner
// has no plan (megatron-dcp when a sequence needs a larger group). `shape`: the
// model's; `bound`: lower_bound(batch).
std::vector<Solution> solve(const Problem& batch,
                            const PlanRequest& request,
                            const Choice& choice,
                            const ModelShape& shape,
                            std::int64_t bound);

}  // namespace nsp
