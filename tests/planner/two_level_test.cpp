#include "nsp/planner/baselines/two_level.h"

#include <gtest/gtest.h>

#include "cases.h"

namespace nsp {
namespace {

TEST(TwoLevel, UsesLeavesAndRootsOnly) {
  const CostModel model = large_model();
  Random random(31);
  for (int i = 0; i < 30; ++i) {
    const Problem problem = problem_of(model, 16, 8, 40000, random_lengths(random, 60, 17));
    const Solution solution = two_level(problem);
    ASSERT_EQ(solution.placements.size(), 60U);
    for (const Placement& placement : solution.placements) {
      EXPECT_TRUE(placement.node.degree == 1 || placement.node.degree == 8);
    }
  }
}

TEST(TwoLevel, WhatNoLeafHoldsGoesToARoot) {
  const CostModel model = large_model();
  const Solution solution = two_level(problem_of(model, 4, 4, 30, {100, 5, 5, 5, 5}));
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.placements[0].node, (Node{0, 4}));
}

TEST(TwoLevel, EqualShortSequencesStayOnLeaves) {
  const CostModel model = large_model();
  for (const Placement& p : two_level(problem_of(model, 4, 4, 1200, {9, 9, 9, 9})).placements) {
    EXPECT_EQ(p.node.degree, 1);
  }
}

}  // namespace
}  // namespace nsp
