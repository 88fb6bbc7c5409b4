#include "nsp/cost/evaluate.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/plan/make_plan.h"
#include "simple_profile.h"

namespace nsp {
namespace {

// World 2, one host. Sequence 0: 256 tokens over both ranks; sequence 1: 128 tokens on rank 0.
//   degree 2: work 6000 / 12000; traffic qkv 128 tokens x 8 / 2 = 512, output 256, a pass 768;
//             latency 10 a pass -> 6778 / 12778 on each rank
//   leaf 0:   4000 / 8000
//   dense:    rank 0 has 128 + 128 tokens: 256 / 512; rank 1 has 128: 128 / 256
TEST(Evaluate, AddsNodesOnTheRanksPath) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Plan plan = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2, .token_budget = 256},
                              {{place(0, 256, {0, 2}), place(1, 128, {0, 1})}});
  const Evaluation result = evaluate(model, plan);
  ASSERT_EQ(result.rounds.size(), 1U);
  EXPECT_EQ(result.rounds[0].ranks[0], (Passes{6778 + 4000 + 256, 12778 + 8000 + 512}));
  EXPECT_EQ(result.rounds[0].ranks[1], (Passes{6778 + 128, 12778 + 256}));
  EXPECT_EQ(result.rounds[0].tokens, (std::vector<std::int64_t>{256, 128}));
  EXPECT_EQ(result.load, (Passes{11034, 21290}));
  EXPECT_EQ(result.tokens_max, 256);
  EXPECT_EQ(result.step, 10 * (11034 + 21290));
  EXPECT_DOUBLE_EQ(predicted(result).forward, 11034e-9);
}

TEST(Evaluate, TheFullestRankOfEachPassCounts) {
  Profile profile = simple_profile();
  profile.dense_backward.token_seconds = 1e-6;
  const CostModel model(simple_model(), profile, 2);
  // Rank 0: one block, 4000 forward. Rank 1: 100 sequences of one token, 100 blocks.
  std::vector<Placement> placements = {place(0, 128, {0, 1})};
  for (int i = 1; i <= 3; ++i) {
    placements.push_back(place(i, 1, {1, 1}));
  }
  const Plan plan = make_plan({.world = 2, .sp_max = 1, .ranks_per_host = 2}, {placements});
  const RoundLoad load = evaluate(model, plan.rounds[0], 2);
  EXPECT_EQ(load.largest.forward, load.ranks[1].forward);
  EXPECT_EQ(load.largest.backward, load.ranks[0].backward);
}

TEST(Evaluate, RoundsAddUpAndAnEmptyPlanIsFree) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const PlanSettings settings{.world = 2, .sp_max = 1, .ranks_per_host = 2};
  const Plan one = make_plan(settings, {{place(0, 128, {0, 1})}});
  const Plan two = make_plan(settings, {{place(0, 128, {0, 1})}, {place(1, 128, {0, 1})}});
  EXPECT_EQ(evaluate(model, two).step, 2 * evaluate(model, one).step);
  EXPECT_EQ(evaluate(model, two).load.forward, 2 * evaluate(model, one).load.forward);
  EXPECT_EQ(evaluate(model, make_plan(settings, {})).step, 0);
}

// Groups {0, 1} and {2, 3}; experts take 0.8 of 1 ns a token forward and 1.6 of 2 backward.
//   before the exchange: attention + 0.2 (0.4) ns x own tokens
//     rank 0: 128 tokens, 4000 + 26 / 8000 + 52    rank 1: 256 tokens, 12000 + 52 / 24000 + 103
//     rank 2: 384 tokens, 24000 + 77 / 48000 + 154  rank 3: none
//   experts: a half of the group's 384 tokens each: 154 / 308 in both groups
// Group {0, 1} leaves at 12052 + 154, group {2, 3} at 24077 + 154: the load. A rank's own entry
// leaves out its wait for the group.
TEST(Evaluate, ExpertGroupsWaitForTheirLastRank) {
  Profile profile = simple_profile();
  profile.dense_forward.expert_token_seconds = 0.8e-9;
  profile.dense_backward.expert_token_seconds = 1.6e-9;
  const CostModel model(simple_model(), profile, 4, 2);
  const Round round{
      .placements = {place(0, 128, {0, 1}), place(1, 256, {1, 1}), place(2, 384, {2, 1})}};
  const RoundLoad load = evaluate(model, round, 4);
  EXPECT_EQ(load.ranks[0], (Passes{4026 + 154, 8052 + 308}));
  EXPECT_EQ(load.ranks[1], (Passes{12052 + 154, 24103 + 308}));
  EXPECT_EQ(load.ranks[2], (Passes{24077 + 154, 48154 + 308}));
  EXPECT_EQ(load.ranks[3], (Passes{154, 308}));
  EXPECT_EQ(load.largest, load.ranks[2]);
  EXPECT_THROW(evaluate(model, round, 3), BadInput);
  EXPECT_THROW(CostModel(simple_model(), simple_profile(), 4, 2), BadInput);
}

TEST(Evaluate, RefusesNodesOutsideTheTree) {
  const CostModel model(simple_model(), simple_profile(), 2);
  Round round;
  round.placements = {place(0, 10, {1, 2})};
  EXPECT_THROW(evaluate(model, round, 4), BadInput);
}

}  // namespace
}  // namespace nsp
