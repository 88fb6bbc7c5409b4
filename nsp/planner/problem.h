// One round's problem and its solutions, as planners see them.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"

namespace nsp {

struct Sequence {
  std::int64_t index = 0;   // in the batch
  std::int64_t tokens = 0;  // kept

  bool operator==(const Sequence&) const = default;
};

// Longest first, ties by index.
void sort_longest_first(std::vector<Sequence>& sequences);

std::vector<std::int64_t> tokens_of(const std::vector<Sequence>& sequences);

struct Problem {
  const CostModel* model = nullptr;  // borrowed
  std::int32_t world = 1;
  std::int32_t sp_max = 1;
  std::int64_t token_budget = 0;
  std::vector<Sequence> sequences;  // longest first
  // What may be used beside local; baselines but static know ulysses only.
  std::vector<Backend> backends = {Backend::kUlysses};
  bool checkpointing = false;  // of steps that are simulated
};

struct Solution {
  std::vector<Placement> placements;  // in the order of the problem's sequences
  bool feasible = false;              // no rank holds more than the token budget
  std::int64_t load = 0;              // nanoseconds of one layer, forward + backward
  std::int64_t tokens_max = 0;
  Schedule schedule{};  // where one was chosen on the way; else empty
};

// nodes[i] runs the problem's sequence i.
Solution score(const Problem& problem, const std::vector<Node>& nodes);

// placements[i] runs the problem's sequence i.
Solution score(const Problem& problem, std::vector<Placement> placements);

// Feasible before infeasible; then smaller load, or fewer tokens on the fullest rank if neither
// fits.
bool better(const Solution& a, const Solution& b);

// The scalar surrogate of the search, nanoseconds of forward + backward that a sequence adds to
// each rank of its node: compute, traffic and dense. A node's first (longest) sequence also pays
// for the node.
std::int64_t share(const CostModel& model, std::int64_t tokens, std::int32_t degree);
std::int64_t opening_share(const CostModel& model, std::int64_t tokens, std::int32_t degree);

}  // namespace nsp
