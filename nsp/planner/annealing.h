// Simulated annealing without floating point: threshold acceptance on an assignment's energy.
//
// A trial stays if the energy rises by less than a random part of a threshold that falls to zero,
// stage by stage. The caller says what a trial moves.
#pragma once

#include <cstdint>
#include <functional>

#include "nsp/planner/assignment.h"
#include "nsp/planner/trial.h"

namespace nsp {

struct Cooling {
  std::int64_t stages = 1;  // of equal work
  std::int64_t heat = 0;    // threshold of the first stage; the last one's is 0
  std::int64_t part = 1;    // each stage takes 1 / part of the threshold off
  std::int64_t strict = 0;  // last stages: the tokens beyond the budget may not grow any more
};

struct AnnealingSteps {
  std::function<void()> begin_stage;
  std::function<void()> propose;  // the moves of one trial
  std::function<void()> kept;     // after a trial that stayed
};

// `work` bounds the trials (Trial::spent).
void anneal(Assignment& state,
            Trial& trial,
            const Cooling& cooling,
            std::int64_t work,
            const AnnealingSteps& steps);

// The targets lie half-way between the mean rank's seconds and the largest, and follow both stage
// by stage. Leaves the best assignment passed in `state`, never a worse one than it was given.
void anneal_to_mean(Assignment& state,
                    Trial& trial,
                    const Cooling& cooling,
                    std::int64_t work,
                    const std::function<void()>& propose);

}  // namespace nsp
