#include "nsp/planner/baselines/flexsp/flexsp.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "../cases.h"
#include "../needs_milp.h"
#include "nsp/plan/check.h"
#include "nsp/planner/baselines/flexsp/cut.h"
#include "nsp/planner/planner.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

class FlexSp : public NeedsMilp {};

PlanRequest random_request(Random& random) {
  PlanRequest request;
  request.planner = "flexsp";
  request.sp_max = 1 << pick(random, 0, 3);
  request.world = request.sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
  request.lengths = random_lengths(random, pick(random, 1, 40), 15);
  request.token_budget = random.below(2) == 0 ? 0 : pick(random, 2000, 20000);
  request.over_length = OverLength::kTruncate;
  return request;
}

// Every micro-batch of the cut by itself.
std::vector<Solution> micro_batches(const Problem& batch, std::int64_t count) {
  Hands hands;
  auto begin = batch.sequences.begin();
  for (const std::size_t end : cut_evenly(tokens_of(batch.sequences), count)) {
    const auto last = batch.sequences.begin() + static_cast<std::ptrdiff_t>(end);
    hands.emplace_back(begin, last);
    begin = last;
  }
  return plan_hands(batch, hands, flexsp_round);
}

// Groups are disjoint: no two placements of a round on different nodes that share a rank.
void expect_disjoint(const Plan& plan) {
  for (const Round& round : plan.rounds) {
    for (const Placement& a : round.placements) {
      for (const Placement& b : round.placements) {
        EXPECT_TRUE(a.node == b.node || !a.node.contains(b.node.first_rank));
      }
    }
  }
}

TEST_F(FlexSp, GroupsAreDisjointBudgetsKeptAndNoStaticPlanIsBetter) {
  Random random(43);
  for (int i = 0; i < 8; ++i) {
    PlanRequest request = random_request(random);
    const Plan found = plan(request, kLarge, kGpu).plan;
    ASSERT_EQ(find_violations(found), std::vector<std::string>{}) << "case " << i;
    EXPECT_TRUE(found.feasible) << "case " << i;
    EXPECT_LE(found.predicted.tokens_max, found.token_budget) << "case " << i;
    expect_disjoint(found);
    request.planner = "static";
    EXPECT_LE(load(found), load(plan(request, kLarge, kGpu).plan) + 1e-12) << "case " << i;
  }
}

TEST_F(FlexSp, SameInputsGiveTheSameBytes) {
  Random random(47);
  PlanRequest request{.lengths = random_lengths(random, 20, 15), .world = 8, .sp_max = 4};
  request.planner = "flexsp";
  EXPECT_EQ(bytes(plan(request, kLarge, kGpu).plan), bytes(plan(request, kLarge, kGpu).plan));
}

// 4 ranks of 1000 tokens: 4000 fills them all, so the two short ones need a second micro-batch.
TEST_F(FlexSp, ASequenceThatNeedsEveryRankTakesAMicroBatchOfItsOwn) {
  PlanRequest request{.lengths = {10, 4000, 20}, .world = 4, .sp_max = 4, .token_budget = 1000};
  request.planner = "flexsp";
  const Plan found = plan(request, kLarge, kGpu).plan;
  ASSERT_TRUE(found.feasible);
  ASSERT_EQ(found.rounds.size(), 2U);
  EXPECT_EQ(found.rounds[0].placements[0].node.degree, 4);
  EXPECT_EQ(found.rounds[1].placements.size(), 2U);
}

// The solver refuses the programs of such costs (infinite factors).
TEST_F(FlexSp, CostsThatNoProgramTakesStillHaveAPlan) {
  Profile free = kGpu;
  free.attention_forward = {.block = {{.tokens = 1, .seconds = 0}}};
  free.attention_backward = free.attention_forward;
  free.dense_forward = {};
  free.dense_backward = {};
  PlanRequest request{.lengths = {8000, 100, 7}, .world = 8, .sp_max = 8, .token_budget = 8000};
  request.planner = "flexsp";
  EXPECT_TRUE(plan(request, kLarge, free).plan.feasible);
}

// One long and one short sequence on 8 ranks: neither waits for the other.
TEST_F(FlexSp, FewerSequencesThanRanksLeaveRanksEmpty) {
  PlanRequest request{.lengths = {80000, 100}, .world = 8, .sp_max = 8, .token_budget = 40000};
  request.planner = "flexsp";
  const Plan found = plan(request, kLarge, kGpu).plan;
  ASSERT_TRUE(found.feasible);
  EXPECT_EQ(find_violations(found), std::vector<std::string>{});
  ASSERT_EQ(found.rounds.size(), 1U);
  EXPECT_GT(found.rounds[0].placements[0].node.degree, 1);
}

// Disjoint groups cannot beat the best of all nested plans, and on such instances may reach it.
TEST_F(FlexSp, IsNeverBetterThanTheBestNestedPlanOfOneRound) {
  const CostModel model = large_model();
  Random random(53);
  for (int i = 0; i < 10; ++i) {
    const Problem problem = problem_of(model, 4, 4, 200000, random_lengths(random, 4, 17));
    const Solution solution = flexsp_round(problem);
    EXPECT_TRUE(solution.feasible);
    EXPECT_GE(solution.load, exhaustive(problem).load) << "case " << i;
  }
}

// Two micro-batches are best here; three are found to be worse only when the last one is solved.
TEST_F(FlexSp, OfAllNumbersOfMicroBatchesTheLeastLoadCounts) {
  const CostModel model = tiny_model();
  const Problem problem = problem_of(
      model, 2, 2, 3855, {5, 5, 464, 3854, 11, 414, 482, 932, 4, 578, 2, 45, 397, 3, 183, 3405});
  std::vector<std::int64_t> loads;
  for (std::int64_t count = 2; count <= 6; ++count) {
    loads.push_back(total_load(micro_batches(problem, count)));
  }
  EXPECT_LT(loads[0], loads[1]);
  EXPECT_EQ(total_load(flexsp(problem)), std::ranges::min(loads));
}

TEST_F(FlexSp, PlansEdgeCases) {
  const std::vector<std::vector<std::int64_t>> batches = {
      {}, {1}, {1, 1, 1}, std::vector<std::int64_t>(32, 4096), {131072}, {8000, 7900, 7800, 50}};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    PlanRequest request{.lengths = batches[i], .world = 12, .sp_max = 4};
    request.planner = "flexsp";
    request.over_length = OverLength::kTruncate;
    const Plan found = plan(request, kLarge, kGpu).plan;
    EXPECT_TRUE(found.feasible) << "batch " << i;
    EXPECT_EQ(find_violations(found), std::vector<std::string>{}) << "batch " << i;
  }
}

}  // namespace
}  // namespace nsp
