// Thousands of tiny instances against exhaustive search: bound <= optimum <= plan.
#include "optimum.h"

#include <cstdio>
#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/rounds.h"
#include "nsp/planner/solve.h"

namespace nsp {
namespace {

// Long-tailed multiples of 8, at most `bits` bits.
std::vector<std::int64_t> even_lengths(Random& random, std::int64_t count, std::int64_t bits) {
  std::vector<std::int64_t> lengths = random_lengths(random, count, bits - 3);
  for (std::int64_t& length : lengths) {
    length *= 8;
  }
  return lengths;
}

struct Case {
  std::int32_t world = 1;
  std::int32_t sp_max = 1;
  std::vector<std::int64_t> lengths;
  std::int64_t budget = 1;
};

// `tightness`: the budget is from this to twice as many tenths of the mean, and holds the longest.
Case random_case(Random& random, std::int64_t most, std::int64_t tightness) {
  Case one;
  one.world = 1 << pick(random, 0, 3);
  one.sp_max = random.below(4) == 0 ? std::max(1, one.world / 2) : one.world;
  one.lengths = even_lengths(random, pick(random, 1, most), 18);
  const std::int64_t sum = std::accumulate(one.lengths.begin(), one.lengths.end(), std::int64_t{0});
  const std::int64_t longest = std::ranges::max(one.lengths);
  one.budget = std::max(sum * pick(random, tightness, 2 * tightness) / 10 / one.world + 1,
                        (longest + one.sp_max - 1) / one.sp_max);
  return one;
}

TEST(Optimum, TheFastSearchFindsWhatPlainEnumerationFinds) {
  const CostModel model = large_model();
  Random random(81);
  for (int i = 0; i < 60; ++i) {
    const Case one = random_case(random, 4, 10);
    const Problem problem = problem_of(model, one.world, one.sp_max, one.budget, one.lengths);
    const Solution plain = exhaustive(problem);
    ASSERT_EQ(Optimum(problem).below(INT64_MAX), plain.feasible ? plain.load : INT64_MAX)
        << "case " << i;
  }
}

TEST(Optimum, OneRoundIsFoundInMostTinyInstancesAndNeverUndercut) {
  const CostModel models[] = {tiny_model(), large_model()};
  Random random(83);
  int cases = 0;
  int reached = 0;
  for (int i = 0; i < 2000; ++i) {
    const CostModel& model = models[i % 2];
    const Case one = random_case(random, 6, 10);
    const Problem problem = problem_of(model, one.world, one.sp_max, one.budget, one.lengths);
    const auto rounds = solve(problem,
                              PlanRequest{},
                              {.kind = PlannerKind::kNsp},
                              i % 2 == 0 ? kTiny : kLarge,
                              lower_bound(problem));
    ASSERT_TRUE(all_feasible(rounds)) << "case " << i;
    if (rounds.size() > 1) {
      continue;  // the next test's
    }
    const std::int64_t most = rounds.front().load;
    const std::int64_t optimum = Optimum(problem).below(most);  // only what is better is searched
    ++cases;
    reached += optimum == most ? 1 : 0;
    ASSERT_LE(lower_bound(problem), optimum) << "case " << i;
  }
  std::printf("optimum of one round reached in %d of %d cases\n", reached, cases);
  EXPECT_GE(cases, 1500);
  EXPECT_GE(reached * 100, cases * 95);
}

TEST(Optimum, OverRoundsIsNeverUndercutByBoundOrPlan) {
  const CostModel models[] = {tiny_model(), large_model()};
  Random random(87);
  int cases = 0;
  int reached = 0;
  int several = 0;
  for (int i = 0; i < 1500; ++i) {
    const CostModel& model = models[i % 2];
    const Case one = random_case(random, 5, pick(random, 2, 11));
    const Problem problem = problem_of(model, one.world, one.sp_max, one.budget, one.lengths);
    const std::int64_t optimum = optimum_over_rounds(problem);
    ASSERT_LT(optimum, INT64_MAX) << "case " << i;
    ASSERT_LE(lower_bound(problem), optimum) << "case " << i;
    if (i % 5 != 0) {
      continue;  // planning takes longer than the proof
    }
    const auto rounds = solve(problem,
                              PlanRequest{},
                              {.kind = PlannerKind::kNsp},
                              i % 2 == 0 ? kTiny : kLarge,
                              lower_bound(problem));
    ASSERT_TRUE(all_feasible(rounds)) << "case " << i;
    ASSERT_GE(total_load(rounds), optimum) << "case " << i;
    ++cases;
    reached += total_load(rounds) == optimum ? 1 : 0;
    several += rounds.size() > 1 ? 1 : 0;
  }
  std::printf("optimum over rounds reached in %d of %d cases, %d of several rounds\n",
              reached,
              cases,
              several);
  EXPECT_GE(several, cases / 10);
  EXPECT_GE(reached * 100, cases * 95);
}

}  // namespace
}  // namespace nsp
