// What every planner promises, over random batches.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/plan/check.h"
#include "nsp/planner/planner.h"

namespace nsp {
namespace {

// The names that planner_names() lists; K is 2. flexsp takes seconds and may be missing: its own
// tests hold it to the same.
std::vector<std::string> planners() {
  std::vector<std::string> names = planner_names();
  std::erase(names, "flexsp");
  for (std::string& name : names) {
    if (name.ends_with(":K")) {
      name.back() = '2';
    }
  }
  return names;
}

// A plan that may be executed, or an answer that says why there is none.
void expect_sound(const PlanResult& result, const std::string& what) {
  if (!result.why_infeasible.empty()) {
    EXPECT_FALSE(result.plan.feasible) << what;
    return;
  }
  ASSERT_EQ(find_violations(result.plan), std::vector<std::string>{}) << what;
  if (!result.plan.feasible) {
    return;
  }
  EXPECT_LE(result.plan.predicted.tokens_max, result.plan.token_budget) << what;
  EXPECT_LE(result.plan.bound_seconds, load(result.plan) + 1e-12) << what;
}

class EveryPlanner : public testing::TestWithParam<std::string> {};

TEST_P(EveryPlanner, GivesSoundPlansAndTheSameBytesAgain) {
  Random random(91);
  for (int i = 0; i < 40; ++i) {
    PlanRequest request{.lengths = {}, .planner = GetParam()};
    request.sp_max = 1 << pick(random, 1, 4);
    request.world = request.sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    request.lengths = random_lengths(random, pick(random, 0, 80), 15);
    request.token_budget = random.below(2) == 0 ? 0 : pick(random, 500, 30000);
    request.over_length = OverLength(random.below(3));
    const PlanResult result = plan(request, kLarge, kGpu);
    expect_sound(result, GetParam() + " case " + std::to_string(i));
    EXPECT_EQ(bytes(result.plan), bytes(plan(request, kLarge, kGpu).plan)) << "case " << i;
  }
}

TEST_P(EveryPlanner, PlansEdgeCases) {
  std::vector<std::int64_t> many(10000);
  Random random(93);
  std::ranges::generate(many, [&] { return pick(random, 1, 1 << pick(random, 0, 12)); });
  std::vector<std::int64_t> one_sets_the_bound(50, 100);
  one_sets_the_bound.push_back(262144);
  const std::vector<std::vector<std::int64_t>> batches = {
      {}, {1}, {1, 1, 1}, std::vector<std::int64_t>(64, 4096), {131072}, one_sets_the_bound, many};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const PlanResult result = plan({.lengths = batches[i],
                                    .world = 16,
                                    .sp_max = 8,
                                    .planner = GetParam(),
                                    .over_length = OverLength::kTruncate},
                                   kLarge,
                                   kGpu);
    expect_sound(result, GetParam() + " batch " + std::to_string(i));
    EXPECT_TRUE(result.plan.feasible) << i;
  }
}

TEST_P(EveryPlanner, LengthsThatFitOnlyAtTheLargestDegreeGoThere) {
  const PlanResult result = plan({.lengths = {8000, 7900, 7800, 50},
                                  .world = 16,
                                  .sp_max = 8,
                                  .token_budget = 1010,
                                  .planner = GetParam()},
                                 kLarge,
                                 kGpu);
  expect_sound(result, GetParam());
  for (const Round& round : result.plan.rounds) {
    for (const Placement& placement : round.placements) {
      EXPECT_TRUE(placement.tokens < 1000 || placement.node.degree == 8);
    }
  }
}

TEST_P(EveryPlanner, PermutedInputGivesTheSameLoad) {
  Random random(97);
  for (int i = 0; i < 6; ++i) {
    PlanRequest request{.lengths = {}, .world = 8, .sp_max = 8, .planner = GetParam()};
    for (int j = 0; j < 60; ++j) {
      request.lengths.push_back(8 * pick(random, 1, 1 << pick(random, 1, 11)));  // no remainders
    }
    const std::int64_t sum =
        std::accumulate(request.lengths.begin(), request.lengths.end(), std::int64_t{0});
    const std::int64_t longest = std::ranges::max(request.lengths);
    request.token_budget = std::max(sum / 8 * pick(random, 4, 12) / 10, longest / 2 + 8);
    const Plan first = plan(request, kLarge, kGpu).plan;
    std::ranges::reverse(request.lengths);
    const Plan second = plan(request, kLarge, kGpu).plan;
    EXPECT_EQ(load(first), load(second)) << GetParam() << " case " << i;
    EXPECT_EQ(first.rounds.size(), second.rounds.size());
  }
}

// With remainders a rank may hold one token a sequence more or fewer.
TEST(Static, RemaindersMoveNoMoreThanATokenASequence) {
  const CostModel model(kLarge, kGpu, 8);
  Random random(99);
  for (int i = 0; i < 20; ++i) {
    PlanRequest request{.lengths = {}, .world = 8, .sp_max = 8, .planner = "static:4"};
    request.lengths = random_lengths(random, 40, 14);
    std::ranges::sort(request.lengths);
    const auto repeated = std::ranges::unique(request.lengths);
    request.lengths.erase(repeated.begin(), repeated.end());
    request.token_budget = 1 << 20;
    const double first = load(plan(request, kLarge, kGpu).plan);
    std::ranges::reverse(request.lengths);
    const double second = load(plan(request, kLarge, kGpu).plan);
    EXPECT_NEAR(first, second, static_cast<double>(model.dense(40).sum()) / 1e9) << "case " << i;
  }
}

// With room for it: where no monotone node keeps the budget, any that does is taken.
TEST(Algorithm1, MonotoneDegreesNeverGrowAlongTheSearchedSequences) {
  Random random(101);
  for (int i = 0; i < 40; ++i) {
    PlanRequest request{.lengths = {}, .world = 16, .sp_max = 16, .planner = "algorithm1"};
    request.lengths = random_lengths(random, 30, 16);
    request.token_budget = 30 << 16;
    const PlanResult result = plan(request, kLarge, kGpu);
    ASSERT_EQ(result.plan.rounds.size(), 1U);
    std::vector<Placement> placements = result.plan.rounds[0].placements;
    std::ranges::sort(placements, [](const Placement& a, const Placement& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.sequence < b.sequence;
    });
    for (std::size_t j = 1; j < placements.size(); ++j) {
      EXPECT_LE(placements[j].node.degree, placements[j - 1].node.degree) << "case " << i;
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& given) {
  std::string name = given.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Planners, EveryPlanner, testing::ValuesIn(planners()), test_name);

}  // namespace
}  // namespace nsp
