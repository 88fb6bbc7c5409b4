#include "nsp/planner/finalists.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/planner/algorithm1.h"
#include "nsp/planner/nsp.h"
#include "nsp/planner/schedules.h"

namespace nsp {
namespace {

std::int64_t step(const Problem& problem, const Solution& solution) {
  std::vector<Round> rounds = {{.placements = solution.placements}};
  return choose_schedules({problem.model, &kLarge, problem.world}, rounds);
}

TEST(Finalists, TheFastestIsTakenOfThoseThatNoRivalIsBelow) {
  const CostModel model = large_model();
  Random random(91);
  int slower_loads = 0;
  for (int i = 0; i < 20; ++i) {
    const Problem problem =
        problem_of(model, 16, 16, 40000, random_lengths(random, pick(random, 20, 60), 16));
    const std::vector<Solution> own = nsp_finalists(problem, nsp_effort("default"), {}, 4);
    const Solution rival = algorithm1(problem, {});
    ASSERT_TRUE(own.front().feasible && rival.feasible) << "case " << i;
    Finalists finalists(problem, kLarge, 10);
    for (const Solution& solution : own) {
      finalists.offer({solution});
    }
    finalists.offer_rival({rival});
    const std::vector<Solution> taken = finalists.choose();
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_LE(taken[0].load, rival.load) << "case " << i;
    for (const Solution& solution : own) {
      EXPECT_TRUE(solution.load > rival.load || step(problem, taken[0]) <= step(problem, solution))
          << "case " << i;
    }
    slower_loads += taken[0].load > own[0].load ? 1 : 0;
  }
  EXPECT_GT(slower_loads, 0);  // the simulator did decide
}

TEST(Finalists, APlanBeyondTheBudgetIsTakenOnlyWhenThereIsNoOther) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 2, 2, 100, {100, 90});
  const Solution beyond = score(problem, std::vector<Node>{{0, 1}, {0, 1}});
  const Solution within = score(problem, std::vector<Node>{{0, 1}, {1, 1}});
  Finalists finalists(problem, kLarge, 4);
  EXPECT_TRUE(finalists.choose().empty());
  finalists.offer({beyond});
  EXPECT_EQ(finalists.least_load(), INT64_MAX);
  finalists.offer_rival({within});
  finalists.offer({beyond});
  EXPECT_EQ(finalists.least_load(), within.load);
  EXPECT_EQ(finalists.choose()[0].placements, within.placements);
}

}  // namespace
}  // namespace nsp
