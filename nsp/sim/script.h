// What the ranks do in a step, as lists for two queues: the simulator's input.
//
// A stage is what every rank does once: a layer's forward, its backward, the head, the optimizer.
// Its steps stand in issue order on the compute queue and on the exchange queue; a queue runs its
// steps one after the other. A step is a group's: where the group has nothing to do, its ranks pass
// at once. A visit is one run of a stage; all ranks make the same visits in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/timeline.h"

namespace nsp {

constexpr std::int64_t kPasses = -1;  // the group has nothing to do in this step

struct QueueStep {
  Activity activity = Activity::kBegin;
  std::int32_t degree = 1;  // ranks of a group
  bool joint = false;       // starts when the last rank of the group has arrived
  std::int32_t needs = 0;   // steps of the stage's other queue that are done or passed before it
  std::vector<std::int64_t> nanoseconds{};  // by group, or kPasses
  std::int32_t first_slot = 0;              // joint steps: number of the first group, in the script
  // For spans alone.
  Phase phase = Phase::kCompute;
  bool backward = false;
  std::vector<Backend> backends{};  // by group

  std::int64_t cost(std::int32_t rank) const {
    return nanoseconds[static_cast<std::size_t>(rank / degree)];
  }
};

struct Stage {
  std::vector<QueueStep> compute{};  // at least one
  std::vector<QueueStep> exchange{};
  bool gathers = false;   // cannot begin before the layer's parameters are gathered
  bool scatters = false;  // its end sends gradients
  bool last = false;      // cannot begin before all FSDP traffic is done
};

struct Visit {
  std::int32_t stage = 0;
  std::int32_t round = 0;
  std::int32_t layer = -1;
  // FSDP operations, counted from the start of the step: done before the visit begins; asked for by
  // a rank once it has begun, and once it has ended.
  std::int32_t fsdp_before = 0;
  std::int32_t asked_at_begin = 0;
  std::int32_t asked_at_end = 0;
};

struct FsdpOperation {
  std::int64_t nanoseconds = 0;  // alone on the links
  bool scatter = false;
  std::int32_t visit = 0;
};

struct Script {
  std::int32_t world = 1;
  std::vector<Stage> stages{};
  std::vector<Visit> visits{};
  std::vector<FsdpOperation> fsdp{};  // one after the other
  std::int32_t asked_at_start = 0;
  std::int32_t slots = 0;  // groups of all joint steps
};

struct FsdpTimes {
  std::int64_t gather = 0;  // nanoseconds of one layer, alone on the links
  std::int64_t scatter = 0;
};

// Sets the FSDP operations of the visits: the gather of a visit's layer is asked for when the visit
// before it begins (one layer ahead, as FSDP2 does), gradients are sent when a visit ends. nullptr:
// no FSDP traffic.
void add_fsdp(Script& script, const FsdpTimes* times);

// Numbers the groups of joint steps through all stages.
void number_slots(Script& script);

}  // namespace nsp
