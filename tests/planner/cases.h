// Models, small problems, exhaustive search, random plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"
#include "nsp/planner/problem.h"

namespace nsp {

inline const ModelShape kTiny = find_model("tiny");
inline const Profile kCpu = find_profile(kTiny, "cpu-gloo");
inline const ModelShape kLarge = find_model("qwen3-30b-a3b");
inline const Profile kGpu = find_profile(kLarge, "h200");

inline CostModel tiny_model() {
  return CostModel(kTiny, kCpu, 8);
}

inline CostModel large_model() {
  return CostModel(kLarge, kGpu, 8);
}

// Predicted seconds of one layer.
inline double load(const Plan& plan) {
  return plan.predicted.forward + plan.predicted.backward;
}

// Equal for equal plans, whenever they were made.
inline std::string bytes(Plan plan) {
  plan.planning_ms = 0;
  return json_text(plan);
}

constexpr Backend kAllBackends[] = {
    Backend::kUlysses, Backend::kGather, Backend::kRing, Backend::kUspRing, Backend::kUspGather};

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

struct Spot {
  std::int32_t first_rank = 0;
  Way way;
};

// Every node in every way that the problem allows.
inline std::vector<Spot> all_spots(const Problem& problem) {
  std::vector<Spot> spots;
  for (const Way& way : problem.model->allowed_ways(problem.sp_max, problem.backends)) {
    for (const Node& node : level(problem.world, way.degree)) {
      spots.push_back({.first_rank = node.first_rank, .way = way});
    }
  }
  return spots;
}

inline Placement place_on(const Problem& problem, std::size_t sequence, const Spot& spot) {
  const Sequence& s = problem.sequences[sequence];
  return place(s.index, s.tokens, spot.first_rank, spot.way);
}

// The best of all assignments; infeasible when none keeps the budget.
inline Solution exhaustive(const Problem& problem) {
  const std::vector<Spot> nodes = all_spots(problem);
  std::vector<std::size_t> digits(problem.sequences.size(), 0);
  std::vector<Placement> chosen(digits.size());
  Solution best;
  while (true) {
    for (std::size_t i = 0; i < digits.size(); ++i) {
      chosen[i] = place_on(problem, i, nodes[digits[i]]);
    }
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
