// The issue order of a round, chosen by simulating a few layers in a row (a single one, from a
// common start, would punish waiting that the next layer makes good).
//
// An order here is: levels in some sequence with the leaves at some place among them, and prologues
// either all at the start or each one level ahead of its compute; every epilogue follows its
// compute. With the leaves last a part of them may run first (leaf_split.h): it hides the first
// prologue, the rest the last epilogue. The candidates are a handful of sequences (root to leaf,
// leaf to root, dearest communication first, longest compute first), then neighbours of the best:
// two levels swapped, the leaves moved by one, another first part. Of the best its first level is
// cut in two waves, short one first, and its last level, short one last, at a few lengths each
// (wave_split.h); then neighbours again.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/layer_time.h"
#include "nsp/sim/round_times.h"

namespace nsp {

constexpr std::int32_t kOrderLayers = 4;
constexpr std::int32_t kMostCutOrders = 16;  // simulated with a level cut, beside the others

struct ChosenOrder {
  std::vector<Issue> order{};
  std::vector<std::int32_t> leaf_first{};  // by rank
  std::vector<LevelCut> cuts{};
  LayerTime time{};        // of kOrderLayers layers
  std::int32_t tried = 0;  // orders simulated
};

// Least forward + backward, then the one tried first; the default order unless another one gains
// more than 1/512 of it (what FSDP's share of the links may change), and no cut unless it gains as
// much again. Every candidate is sound. `most`: orders of whole levels simulated at most, at least
// 1 (the default order). The round's schedule is the default one.
ChosenOrder best_order(const CostModel& model,
                       const Round& round,
                       std::int32_t world,
                       std::int32_t most = 96);

// Makes the order that of a schedule.
void set_order(ChosenOrder chosen, Schedule& schedule);

}  // namespace nsp
