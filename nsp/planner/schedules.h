// The schedules of a plan's rounds: best_order.h, judged by a whole step.
//
// The layers that find an order know nothing of FSDP traffic, beside which exchanges run at half
// speed: a cut that gains there can lose in the step. So where some round has a cut, the simulator
// plays the step with all cuts and with none.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// What a step is played on.
struct StepRules {
  const CostModel* model = nullptr;   // borrowed
  const ModelShape* shape = nullptr;  // borrowed
  std::int32_t world = 1;
  bool checkpointing = false;  // of whole layers
};

// Sets the orders, first leaves and cuts of rounds with placements and default schedules. Returns
// the simulated step, nanoseconds.
std::int64_t choose_schedules(const StepRules& rules, std::vector<Round>& rounds);

// The same of one round by itself; nothing is played where there is nothing to decide.
void choose_schedule(const StepRules& rules, Round& round);

}  // namespace nsp
