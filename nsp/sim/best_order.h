// The issue order of a round, chosen by simulating a few layers in a row (a single one, from a
// common start, would punish waiting that the next layer makes good).
//
// An order here is: levels in some sequence with the leaves at some place among them, and prologues
// either all at the start or each one level ahead of its compute; every epilogue follows its
// compute. The candidates are a handful of sequences (root to leaf, leaf to root, dearest
// communication first, longest compute first), then neighbours of the best: two levels swapped, the
// leaves moved by one.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/layer_time.h"

namespace nsp {

constexpr std::int32_t kOrderLayers = 4;

struct ChosenOrder {
  std::vector<Issue> order{};
  LayerTime time{};        // of kOrderLayers layers
  std::int32_t tried = 0;  // orders simulated
};

// Least forward + backward, then the one tried first; the default order unless another one gains
// more than 1/512 of it (what FSDP's share of the links may change). Every candidate is sound.
// `most`: orders simulated at most, at least 1 (the default order).
ChosenOrder best_order(const RoundTimes& times, const Round& round, std::int32_t most = 96);

ChosenOrder best_order(const CostModel& model, const Round& round, std::int32_t world);

}  // namespace nsp
