// Which of the two mark orders a plan gets, if any: the one under which the simulator plays the
// whole step faster, layers checkpointed and recomputed by the marks. Nothing else of the plan
// depends on it.
#pragma once

#include <optional>
#include <string>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"
#include "nsp/planner/marks.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// auto (nullopt: the better one), tree, seconds-per-byte.
std::optional<MarkOrder> parse_mark_order(const std::string& name);

// Marks by both orders and takes the faster; nothing where neither is faster than no mark; equal
// steps: by seconds a byte. The rule's own order is not looked at. The plan has its schedules.
// Deterministic.
void mark_by_better_order(Plan& plan,
                          const CostModel& model,
                          const ModelShape& shape,
                          MarkRule rule);

}  // namespace nsp
