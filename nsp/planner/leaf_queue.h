// The ranks by surrogate cost: greedy placement of short sequences in logarithmic time each.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/search_state.h"

namespace nsp {

class LeafQueue {
 public:
  LeafQueue(const SearchState& state, std::int32_t world);

  // Whether some leaf stays within the budget.
  bool holds(std::int64_t tokens, std::int64_t budget) const;
  // The least-loaded rank that stays within the budget (ties: lowest rank), else the one with the
  // fewest tokens; it takes the sequence.
  std::int32_t place(std::int64_t tokens, std::int64_t cost, std::int64_t budget);

 private:
  struct Leaf {
    std::int64_t cost = 0;
    std::int64_t tokens = 0;
    std::int32_t rank = 0;
  };

  std::int32_t take(std::int64_t tokens, std::int64_t cost);

  std::vector<Leaf> open_;  // heap, least cost first
  std::vector<Leaf> full_;  // heap, fewest tokens first: did not hold the last sequence tried
};

}  // namespace nsp
