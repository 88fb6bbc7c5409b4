#include "nsp/planner/rounds.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/planner/algorithm1.h"

namespace nsp {
namespace {

Solution by_algorithm1(const Problem& problem) {
  return algorithm1(problem, {});
}

TEST(Rounds, TheFewestThatCouldHold) {
  EXPECT_EQ(least_rounds(0, 4, 10), 1);
  EXPECT_EQ(least_rounds(40, 4, 10), 1);
  EXPECT_EQ(least_rounds(41, 4, 10), 2);
}

TEST(Rounds, ABatchThatFitsTakesOne) {
  const CostModel model = large_model();
  EXPECT_EQ(plan_rounds(problem_of(model, 2, 2, 100, {50, 60, 70}), by_algorithm1).size(), 1U);
}

TEST(Rounds, EverySequenceIsPlacedOnceAndTheBudgetKept) {
  const CostModel model = tiny_model();
  Random random(11);
  for (int i = 0; i < 50; ++i) {
    const auto lengths = random_lengths(random, pick(random, 1, 40), 10);
    const std::int64_t longest = *std::ranges::max_element(lengths);
    const Problem problem =
        problem_of(model, 4, 4, (longest + 3) / 4 + pick(random, 0, 50), lengths);
    const std::vector<Solution> rounds = plan_rounds(problem, by_algorithm1);
    EXPECT_TRUE(all_feasible(rounds)) << "case " << i;
    std::vector<std::int64_t> seen;
    for (const Solution& round : rounds) {
      EXPECT_LE(round.tokens_max, problem.token_budget);
      for (const Placement& placement : round.placements) {
        seen.push_back(placement.sequence);
      }
    }
    std::ranges::sort(seen);
    ASSERT_EQ(seen.size(), lengths.size());
    for (std::size_t j = 0; j < seen.size(); ++j) {
      ASSERT_EQ(seen[j], static_cast<std::int64_t>(j));
    }
  }
}

}  // namespace
}  // namespace nsp
