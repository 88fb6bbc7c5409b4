// Where a round's leaf sequences may be cut: a part that runs before everything else and hides the
// first prologue, and the rest, which the issue order places.
//
// The first part should be as short as hides that prologue, and about equal in seconds on ranks
// that exchange with one another, since the others wait for the last. So every rank of a tree (the
// nodes of the largest degree used) takes its fewest leaf sequences, longest first, that take as
// long as the dearest such prologue in both passes.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/round_times.h"

namespace nsp {

class LeafSplit {
 public:
  // Borrows the model. Placements are in the tree.
  LeafSplit(const CostModel& model, const Round& round, std::int32_t world);

  // By rank: sequences that run first where each rank computes the waves of `times` in this order,
  // to hide `halves` / 2 of its first prologue; 0 for ranks of trees without exchanges.
  std::vector<std::int32_t> leaf_first(const RoundTimes& times,
                                       const std::vector<LevelWave>& waves,
                                       std::int64_t halves) const;

  // The times of the round with so many first; `times` are those with none.
  RoundTimes times(RoundTimes times, const std::vector<std::int32_t>& leaf_first) const;

 private:
  std::int32_t count(std::size_t rank, const Passes& least) const;
  NodeTimes part(std::size_t rank, std::size_t begin, std::size_t end) const;

  const CostModel& model_;
  std::vector<std::vector<SequenceCost>> leaves_;  // by rank, longest first
};

}  // namespace nsp
