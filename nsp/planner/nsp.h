// The default planner: start plans, annealing of the long sequences, local search, ties to fewer
// bytes.
//
// 1. Start plans: target greedy with the target bisected, and those that are given (baselines).
// 2. From the best: anneal_skeleton with different numbers of long sequences, local_search on each
//    result. The best of all by tokens beyond the budget, then load, then exchanged bytes.
// 3. A sequence goes to a smaller degree wherever that moves fewer bytes and the load stays within
//    1/8192 of the best, and not above any start plan's: nearly equal loads are decided by
//    communication.
// Work is counted in steps, the generator is our own, all costs are integers: equal bytes on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nsp/planner/problem.h"

namespace nsp {

struct NspEffort {
  int targets = 4;            // steps of the target's bisection
  std::vector<int> parts{};   // a restart each: sequences above load / part on a leaf are long
  std::int64_t skeleton = 0;  // work of each restart's annealing, for 64 ranks
  std::int64_t search = 0;    // and of its local search
  bool baselines = true;      // start from, and never be worse than, the baselines
  int split_percent = 0;      // gap from which more rounds than needed are tried; 0: never
  std::int64_t trials = 0;    // of a deal's improvement, for each round
  int more_rounds = 0;        // numbers of rounds beyond the fewest that are tried
  int looks = 0;              // deals from each start that are planned to choose one
  std::int64_t bound = 0;     // a load that no plan is below: searching ends there
  std::vector<std::int64_t> thin{};  // further finalists: step 3 with 1 / thin of the load
  std::size_t finalists = 1;         // plans that the simulator chooses from
  bool all_restarts = false;         // what every restart found is a finalist
};

// fast, default or thorough.
NspEffort nsp_effort(const std::string& name);

// One round. `starts`: further start plans, a placement for each sequence of the problem, in its
// order; those in ways that the problem does not allow are left out.
Solution nsp_round(const Problem& problem,
                   const NspEffort& effort,
                   const std::vector<std::vector<Placement>>& starts = {});

// The same one, and behind it up to `most` - 1 others that keep the token budget: of higher load,
// but less exchange or another balance. For the simulator to choose from.
std::vector<Solution> nsp_finalists(const Problem& problem,
                                    const NspEffort& effort,
                                    const std::vector<std::vector<Placement>>& starts,
                                    std::size_t most);

}  // namespace nsp
