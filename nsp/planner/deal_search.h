// Better ways to deal a batch to rounds, judged by RoundEstimate.
#pragma once

#include <cstdint>

#include "nsp/planner/deal.h"
#include "nsp/planner/round_estimate.h"

namespace nsp {

struct DealFound {
  Hands hands;
  std::int64_t step = 0;  // estimated nanoseconds of all rounds in a step
};

// Moves and swaps of sequences between two rounds at a time, accepted by a falling threshold:
// `trials` of them. The result is never estimated worse than `hands`, unless these hold more tokens
// than they should (RoundEstimate::most_tokens). A sequence may leave a round empty.
DealFound improve_deal(const RoundEstimate& estimate, const Hands& hands, std::int64_t trials);

}  // namespace nsp
