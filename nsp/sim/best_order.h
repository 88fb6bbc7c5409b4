// The issue order of a round, chosen by simulating a few layers in a row (a single one, from a
// common start, would punish waiting that the next layer makes good).
//
// An order here is: levels in some sequence with the leaves at some place among them, and prologues
// either all at the start or each one level ahead of its compute; every epilogue follows its
// compute. With the leaves last a part of them may run first (leaf_split.h): it hides the first
// prologue, the rest the last epilogue. The candidates are a handful of sequences (root to leaf,
// leaf to root, dearest communication first, longest compute first), then neighbours of the best:
// two levels swapped, the leaves moved by one, another first part.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/layer_time.h"
#include "nsp/sim/round_times.h"

namespace nsp {

constexpr std::int32_t kOrderLayers = 4;

struct ChosenOrder {
  std::vector<Issue> order{};
  std::vector<std::int32_t> leaf_first{};  // by rank
  LayerTime time{};                        // of kOrderLayers layers
  std::int32_t tried = 0;                  // orders simulated
};

// Least forward + backward, then the one tried first; the default order unless another one gains
// more than 1/512 of it (what FSDP's share of the links may change). Every candidate is sound.
// `most`: orders simulated at most, at least 1 (the default order). The round's schedule is the
// default one.
ChosenOrder best_order(const CostModel& model,
                       const Round& round,
                       std::int32_t world,
                       std::int32_t most = 96);

}  // namespace nsp
