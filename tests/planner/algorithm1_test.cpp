#include "nsp/planner/algorithm1.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/planner/bound.h"

namespace nsp {
namespace {

TEST(Algorithm1, OneSequenceIsSpreadOverAllRanks) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 4, 40000, {131072});
  const Solution solution = algorithm1(problem, {});
  ASSERT_EQ(solution.placements.size(), 1U);
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.placements[0].node, (Node{0, 4}));
}

TEST(Algorithm1, EqualShortSequencesStayOnTheirOwnLeaves) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 4, 1200, {1000, 1000, 1000, 1000});
  const Solution solution = algorithm1(problem, {});
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.tokens_max, 1000);
  for (const Placement& placement : solution.placements) {
    EXPECT_EQ(placement.node.degree, 1);
  }
}

TEST(Algorithm1, OneLongAndManyShortNest) {
  const CostModel model = large_model();
  std::vector<std::int64_t> lengths(40, 3000);
  lengths.push_back(150000);
  const Problem problem = problem_of(model, 8, 8, 41000, lengths);
  const Solution solution = algorithm1(problem, {});
  EXPECT_TRUE(solution.feasible);
  EXPECT_GT(solution.placements.front().node.degree, 1);
  EXPECT_TRUE(std::ranges::any_of(solution.placements,
                                  [](const Placement& p) { return p.node.degree == 1; }));
}

TEST(Algorithm1, NeverBeatsTheOptimumNorTheBound) {
  const CostModel tiny = tiny_model();
  const CostModel large = large_model();
  Random random(3);
  double worst = 1;
  for (int i = 0; i < 60; ++i) {
    const CostModel& model = i % 2 == 0 ? tiny : large;
    const auto lengths = random_lengths(random, pick(random, 1, 5), 15);
    std::int64_t sum = 0;
    for (const std::int64_t length : lengths) {
      sum += length;
    }
    const std::int32_t world = 1 << pick(random, 0, 2);
    const Problem problem = problem_of(model, world, world, sum / world * 3 / 2 + 1, lengths);
    const Solution optimum = exhaustive(problem);
    const Solution found = algorithm1(problem, {});
    ASSERT_LE(lower_bound(problem), optimum.load) << "case " << i;
    if (found.feasible) {
      ASSERT_LE(optimum.load, found.load) << "case " << i;
      worst = std::max(worst, static_cast<double>(found.load) / static_cast<double>(optimum.load));
    }
  }
  std::printf("largest ratio of algorithm1 to the optimum: %.3f\n", worst);
}

TEST(Algorithm1, WideBeamWithoutMonotonyFindsTheSurrogateOptimum) {
  // Five equal sequences on two ranks: three leaves on one rank lose to two, two and one spread.
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 2, 2, 60000, std::vector<std::int64_t>(5, 20000));
  const Solution solution = algorithm1(problem, {.prefix = 64, .beam = 64, .monotone = false});
  EXPECT_EQ(solution.load, exhaustive(problem).load);
}

TEST(Algorithm1, KeepsTheBudgetOfRandomBatches) {
  const CostModel model = tiny_model();
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    const std::int32_t sp_max = 1 << pick(random, 0, 3);
    const std::int32_t world = sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    const auto lengths = random_lengths(random, pick(random, 1, 100), 12);
    const std::int64_t budget = pick(random, 100, 5000);
    const Problem problem = problem_of(model, world, sp_max, budget, lengths);
    const Solution solution = algorithm1(problem, {.prefix = 8, .beam = 3});
    ASSERT_EQ(solution.placements.size(), lengths.size());
    ASSERT_EQ(solution.feasible, solution.tokens_max <= budget);
  }
}

TEST(Algorithm1, WhatNoBudgetHoldsIsMarkedInfeasible) {
  const CostModel model = large_model();
  const Solution solution = algorithm1(problem_of(model, 2, 2, 10, {100, 100}), {});
  EXPECT_FALSE(solution.feasible);
  EXPECT_EQ(solution.placements.size(), 2U);
  EXPECT_EQ(solution.tokens_max, 100);
}

TEST(Algorithm1, TailThatNoLeafHoldsClimbs) {
  const CostModel model = large_model();
  // Three sequences of 10 tokens on two ranks, 15 tokens a rank: one must be split.
  const Solution solution =
      algorithm1(problem_of(model, 2, 2, 15, {10, 10, 10}), {.prefix = 0, .beam = 1});
  EXPECT_TRUE(solution.feasible);
}

}  // namespace
}  // namespace nsp
