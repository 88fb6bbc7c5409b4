// The stages of one round, from its times and its issue order.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"
#include "nsp/sim/round_times.h"
#include "nsp/sim/script.h"

namespace nsp {

// What activation checkpointing runs again in backward: nothing, the whole layer, or the layer
// without the attention of placements that are marked save or save_qkv.
enum class Checkpointing : std::uint8_t { kNone, kFull, kMarks };

struct StageOptions {
  bool overlap = true;  // false: levels root to leaf, each phase after the one before it
  Checkpointing checkpointing = Checkpointing::kNone;
};

struct RoundStages {
  Stage forward;
  Stage head;
  Stage backward;
};

RoundStages make_stages(const CostModel& model,
                        const Round& round,
                        std::int32_t world,
                        const StageOptions& options);

Stage optimizer_stage(const CostModel& model, std::int32_t world);

}  // namespace nsp
