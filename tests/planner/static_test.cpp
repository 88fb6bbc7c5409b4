#include "nsp/planner/baselines/static.h"

#include <gtest/gtest.h>

#include "cases.h"

namespace nsp {
namespace {

TEST(Static, DealsLongestFirstToTheLeastLoadedGroup) {
  const CostModel model = large_model();
  // Degree 1 on two ranks: 5 | 4, then 3 -> rank 1, 2 -> rank 0 (7 | 7).
  const Problem problem = problem_of(model, 2, 2, 8000, {5000, 4000, 3000, 2000});
  const Solution solution = static_degree(problem, 1);
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.placements[0].node, (Node{0, 1}));
  EXPECT_EQ(solution.placements[1].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[2].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[3].node, (Node{0, 1}));
}

TEST(Static, UsesOneDegree) {
  const CostModel model = large_model();
  const Solution solution =
      static_degree(problem_of(model, 8, 4, 100000, {9, 8, 7, 6, 5, 100000}), 4);
  for (const Placement& placement : solution.placements) {
    EXPECT_EQ(placement.node.degree, 4);
    EXPECT_EQ(placement.backend, Backend::kUlysses);
  }
}

TEST(Static, ABudgetThatCannotHoldIsInfeasible) {
  const CostModel model = large_model();
  EXPECT_FALSE(static_degree(problem_of(model, 2, 2, 9, {10}), 1).feasible);
  EXPECT_TRUE(static_degree(problem_of(model, 2, 2, 9, {10}), 2).feasible);
}

}  // namespace
}  // namespace nsp
