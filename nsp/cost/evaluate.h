// The cost of a whole plan.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"

namespace nsp {

// One round: nanoseconds of one layer and tokens, by rank. With expert parallelism a rank's seconds
// leave out its wait for its group; `largest` is the same with it.
struct RoundLoad {
  std::vector<Passes> ranks;
  std::vector<std::int64_t> tokens;
  Passes largest;  // over the ranks, each pass by itself

  std::int64_t tokens_max() const;
};

struct Evaluation {
  std::vector<RoundLoad> rounds;
  Passes load;            // sum over rounds of `largest`, nanoseconds of one layer
  std::int64_t step = 0;  // nanoseconds of the whole optimizer step
  std::int64_t tokens_max = 0;
};

RoundLoad evaluate(const CostModel& model, const Round& round, std::int32_t world);
Evaluation evaluate(const CostModel& model, const Plan& plan);

// Throws BadInput unless expert-parallel groups of `ep` ranks fit: a power of two that divides the
// world; 1 for a model without experts.
void check_ep(std::int32_t ep, std::int32_t world, const ModelShape& shape);

// The same in seconds, as a plan that saves no attention output carries it.
Predicted predicted(const Evaluation& evaluation);

}  // namespace nsp
