// Small problems, exhaustive search, random plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/cost/make_profile.h"
#include "nsp/planner/problem.h"

namespace nsp {

inline CostModel tiny_model() {
  const ModelShape shape = find_model("tiny");
  return CostModel(shape, find_profile(shape, "cpu-gloo"), 8);
}

inline CostModel large_model() {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  return CostModel(shape, find_profile(shape, "h200"), 8);
}

inline Problem problem_of(const CostModel& model,
                          std::int32_t world,
                          std::int32_t sp_max,
                          std::int64_t token_budget,
                          const std::vector<std::int64_t>& lengths) {
  Problem problem{.model = &model,
                  .world = world,
                  .sp_max = sp_max,
                  .token_budget = token_budget,
                  .sequences = {}};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    problem.sequences.push_back({.index = static_cast<std::int64_t>(i), .tokens = lengths[i]});
  }
  sort_longest_first(problem.sequences);
  return problem;
}

inline std::vector<Node> all_nodes(const Problem& problem) {
  std::vector<Node> nodes;
  for (const std::int32_t degree : problem.model->allowed_degrees(problem.sp_max)) {
    for (const Node& node : level(problem.world, degree)) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

// The best of all assignments; infeasible when none keeps the budget.
inline Solution exhaustive(const Problem& problem) {
  const std::vector<Node> nodes = all_nodes(problem);
  std::vector<std::size_t> digits(problem.sequences.size(), 0);
  std::vector<Node> chosen(digits.size());
  Solution best;
  while (true) {
    std::ranges::transform(digits, chosen.begin(), [&](std::size_t d) { return nodes[d]; });
    Solution solution = score(problem, chosen);
    if (best.placements.empty() || better(solution, best)) {
      best = std::move(solution);
    }
    std::size_t i = 0;
    while (i < digits.size() && ++digits[i] == nodes.size()) {
      digits[i++] = 0;
    }
    if (i == digits.size()) {
      return best;
    }
  }
}

inline std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// Long-tailed lengths: uniform in the number of bits.
inline std::vector<std::int64_t> random_lengths(Random& random,
                                                std::int64_t count,
                                                std::int64_t bits) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(pick(random, 1, std::int64_t{1} << pick(random, 0, bits)));
  }
  return lengths;
}

}  // namespace nsp
