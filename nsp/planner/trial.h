// One tentative change of an assignment: kept if the energy allows, otherwise undone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nsp/base/random.h"
#include "nsp/planner/assignment.h"

namespace nsp {

class Trial {
 public:
  // Borrows both.
  Trial(Assignment& state, Random& random) : state_(state), random_(random) {}

  void begin();
  void move(std::size_t sequence, Assignment::Id node);
  // Threshold acceptance: keeps the moves since begin() if the energy rose by less than a random
  // part of `threshold`, and the tokens beyond the budget are at most `most_excess`.
  bool settle(std::int64_t threshold, std::int64_t most_excess);

  std::size_t below(std::size_t bound);
  // A random way of a level, and a random node of a way.
  std::size_t way_at(std::size_t level);
  Assignment::Id node_of(std::size_t way);
  // Work of all trials so far, about 40 ns a unit: clocks decide nothing.
  std::int64_t spent() const { return spent_; }

 private:
  Assignment& state_;
  Random& random_;
  std::int64_t energy_ = 0;
  std::int64_t spent_ = 0;
};

}  // namespace nsp
