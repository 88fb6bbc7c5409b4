// The plans of one batch from which planner nsp takes one: the one whose step the simulator plays
// fastest, each round in the issue order that it would get, among those of no higher load than any
// rival's plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/planner/problem.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

class Finalists {
 public:
  // Borrows both. `most`: plans that are simulated, those of least load; 1: the least load decides.
  Finalists(const Problem& batch, const ModelShape& shape, std::size_t most)
      : batch_(batch), shape_(shape), most_(most) {}

  // A plan, a solution a round; an empty one is none. One that exceeds the token budget counts only
  // while there is no other.
  void offer(std::vector<Solution> rounds);
  // And nothing of higher load may be taken any more. `played`: its step is, beside the `most`.
  void offer_rival(std::vector<Solution> rounds, bool played = false);
  void limit(std::int64_t load) { most_load_ = std::min(most_load_, load); }

  // The plan of least load, of equals the first; nullptr while there is none.
  const std::vector<Solution>* least_load_plan() const;
  // Its load, or INT64_MAX while nothing keeps the budget.
  std::int64_t least_load() const;
  // The one to take; empty when nothing was offered. It has its schedules, if some were simulated.
  const std::vector<Solution>& choose();

 private:
  struct Plan {
    std::vector<Solution> rounds;
    std::int64_t load = 0;
    std::int64_t step = 0;  // simulated; 0: not yet
    bool played = false;    // even if it is not among the least loads
  };

  void offer(Plan plan);
  void play(Plan& plan) const;

  const Problem& batch_;
  const ModelShape& shape_;
  std::size_t most_;
  std::vector<Plan> plans_;  // all within the token budget, or one that is not
  std::int64_t most_load_ = INT64_MAX;
};

}  // namespace nsp
