// Where the levels of a round may be cut in two waves, and what the round then costs.
//
// A cut is of use at either end of the issue order. At its head the short wave's prologue is
// exposed instead of the whole level's, and its launch hides that of the long one; at its end, with
// the long wave first, the short one's epilogue alone comes last. It costs a launch and the fixed
// seconds of two exchanges. So few lengths come into question: the shortest, the one that leaves a
// short wave just long enough to hide the traffic of the rest, and the longest but one.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/round_times.h"

namespace nsp {

class WaveSplit {
 public:
  // Borrows model and times, which are the round's without any cut. Placements are in the tree.
  WaveSplit(const CostModel& model, const Round& round, const RoundTimes& times);

  // In increasing order, each a sound cut of this level; none where its sequences are of one
  // length.
  std::vector<std::int64_t> lengths(std::int32_t degree) const;

  // The times of the round with these cuts, and all its leaves after it.
  RoundTimes times(const std::vector<LevelCut>& cuts) const;

 private:
  const Round& level(std::int32_t degree) const;
  std::int64_t hiding_length(std::int32_t degree) const;

  const CostModel& model_;
  const RoundTimes& times_;
  std::vector<Round> levels_;  // the placements of each exchanged level, shortest first
};

}  // namespace nsp
