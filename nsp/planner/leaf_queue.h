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

    // Reversed, so that a heap gives the least-loaded first.
    bool operator<(const Leaf& other) const {
      return cost != other.cost ? cost > other.cost : rank > other.rank;
    }
  };

  std::int32_t take(Leaf leaf, std::int64_t tokens, std::int64_t cost);

  std::vector<Leaf> heap_;
  std::vector<Leaf> passed_;  // scratch: popped because they are too full
};

}  // namespace nsp
