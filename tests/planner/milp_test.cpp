#include "nsp/planner/milp.h"

#include <limits>

#include <gtest/gtest.h>

#include "needs_milp.h"

namespace nsp {
namespace {

class MilpSolver : public NeedsMilp {};

// Maximise 5x + 4y + 3z under 2x + 3y + z <= 5, 4x + y + 2z <= 11, 3x + 4y + 2z <= 8, in integers:
// x = 2, y = 0, z = 1 with 13.
Milp three_integers() {
  Milp milp;
  for (const double value : {5.0, 4.0, 3.0}) {
    milp.add({.cost = -value, .upper = 10});
  }
  const auto row = [&](double most, double x, double y, double z) {
    milp.rows.push_back(
        {.lower = -Milp::kInfinity,
         .upper = most,
         .entries = {
             {.column = 0, .factor = x}, {.column = 1, .factor = y}, {.column = 2, .factor = z}}});
  };
  row(5, 2, 3, 1);
  row(11, 4, 1, 2);
  row(8, 3, 4, 2);
  return milp;
}

TEST_F(MilpSolver, SolvesAProgramByHand) {
  const MilpAnswer answer = solve_milp(three_integers(), {});
  EXPECT_TRUE(answer.optimal);
  EXPECT_EQ(answer.values, (std::vector<double>{2, 0, 1}));
  EXPECT_NEAR(answer.objective, -13, 1e-9);
}

TEST_F(MilpSolver, NoSolutionIsAnAnswer) {
  Milp milp = three_integers();
  milp.rows.push_back({.lower = 11, .upper = 20, .entries = {{.column = 1, .factor = 1}}});
  const MilpAnswer answer = solve_milp(milp, {});
  EXPECT_TRUE(answer.values.empty());
  EXPECT_FALSE(answer.optimal);
}

TEST_F(MilpSolver, AProgramThatTheSolverRefusesHasNoSolution) {
  Milp milp = three_integers();
  milp.rows.front().entries.front().factor = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(solve_milp(milp, {}).values.empty());
}

TEST_F(MilpSolver, AStartIsKeptWhenNoNodeMayBeSearched) {
  const MilpAnswer answer = solve_milp(three_integers(), {.nodes = 0, .gap = 1}, {1, 1, 0});
  ASSERT_FALSE(answer.values.empty());
  EXPECT_LE(answer.objective, -9 + 1e-9);
}

}  // namespace
}  // namespace nsp
