// Plays a plan's whole optimizer step: every layer of every round, forward and backward, FSDP,
// recomputation, LM head, optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/cost/profile.h"
#include "nsp/plan/plan.h"
#include "nsp/sim/stages.h"
#include "nsp/sim/timeline.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

struct SimulateOptions {
  bool fsdp = true;     // parameters gathered one layer ahead, gradients scattered in backward
  bool overlap = true;  // false: a rank's exchanges and compute one after the other
  Checkpointing checkpointing = Checkpointing::kNone;
  std::int32_t ep = 1;       // ranks of an expert-parallel group (check_ep)
  bool spans = false;        // keep every span (then every layer is played)
  bool every_layer = false;  // play layers that repeat exactly, too: same result, slower
};

// The plan has passed check(). Same inputs, same timeline. Throws BadInput for an ep that
// does not fit or a profile that does not know its experts, or a way without cost. Safe to
// call from several threads.
Timeline simulate(const Plan& plan,
                  const ModelShape& shape,
                  const Profile& profile,
                  const SimulateOptions& options = {});

// The step of such a plan alone, nanoseconds, otherwise with default options: rounds that have
// their schedules, under a model of `shape`.
std::int64_t simulated_step(const CostModel& model,
                            const ModelShape& shape,
                            const std::vector<Round>& rounds,
                            std::int32_t world,
                            Checkpointing checkpointing = Checkpointing::kNone);

// none, full, marks.
Checkpointing parse_checkpointing(const std::string& name);

}  // namespace nsp
