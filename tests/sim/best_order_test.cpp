#include "nsp/sim/best_order.h"

#include <gtest/gtest.h>

#include "nsp/cost/make_profile.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/wave.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

// Every rank has a leaf (compute 40000) that hides what is sent first. Degree 2: prologue 4101,
// compute 272000, epilogue 2053; degree 4: 1157, 10000, 389. Dense: 1664 tokens. Root to leaf the
// dear epilogue of degree 2 comes last and is exposed; the other way round the cheap one.
TEST(BestOrder, LeavesTheCheapEpilogueExposed) {
  const CostModel model(simple_model(), simple_profile(), 4);
  const Round round = make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4},
                                {{place(0, 512, {0, 4}),
                                  place(1, 2048, {0, 2}),
                                  place(2, 2048, {2, 2}),
                                  place(3, 512, {0, 1}),
                                  place(4, 512, {1, 1}),
                                  place(5, 512, {2, 1}),
                                  place(6, 512, {3, 1})}})
                          .rounds[0];
  const RoundTimes times = round_times(model, round, 4);
  const ChosenOrder chosen = best_order(model, round, 4);
  EXPECT_EQ(chosen.order.back(), (Issue{Phase::kEpilogue, 4}));
  EXPECT_EQ(simulate_layer(times, default_order(round)).forward, 322000 + 2053 + 1664);
  EXPECT_EQ(simulate_layer(times, chosen.order).forward, 322000 + 389 + 1664);
}

// Leaf first, 261 of each layer's forward is exposed, and 517 of its backward; leaf last the other
// way round. One of rank 0's two leaves first (4000) hides the prologue, the other one the
// epilogue.
TEST(BestOrder, CutsTheLeavesToHideBothExchanges) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Round round =
      make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                {{place(0, 256, {0, 2}), place(1, 128, {0, 1}), place(2, 128, {0, 1})}})
          .rounds[0];
  const ChosenOrder chosen = best_order(model, round, 2);
  EXPECT_EQ(chosen.leaf_first, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(chosen.order.back(), (Issue{Phase::kCompute, 1}));
  EXPECT_EQ(chosen.time, (LayerTime{4 * 14384, 4 * 28768}));
}

// Two sequences over both ranks and nothing else. 256 tokens: prologue 512 / 256, compute 6000 /
// 12000, epilogue 256 / 512; 512 tokens: 1024 / 512, 20000 / 40000, 512 / 1024; each exchange 5
// more; dense 384 / 768. Whole, every exchange is exposed: 1541 + 26000 + 773 + 384. Cut, the long
// prologue and the short epilogue are not: 517 + 26000 + 517 + 384 and 261 + 52000 + 1029 + 768.
TEST(BestOrder, CutsALevelThatNothingElseHides) {
  const CostModel model(simple_model(), simple_profile(), 2);
  Round round = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                          {{place(0, 512, {0, 2}), place(1, 256, {0, 2})}})
                    .rounds[0];
  const ChosenOrder chosen = best_order(model, round, 2);
  EXPECT_EQ(chosen.cuts, (std::vector<LevelCut>{{.degree = 2, .tokens = 256}}));
  EXPECT_EQ(chosen.order.front(), (Issue{Phase::kPrologue, 2, Wave::kShort}));
  EXPECT_EQ(chosen.time, (LayerTime{4 * 27418, 4 * 54058}));
  EXPECT_EQ(simulate_layer(round_times(model, round, 2), default_order(round)).forward, 28698);
}

TEST(BestOrder, KeepsTheDefaultWhereNothingIsToBeWon) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Round round = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                                {{place(0, 1, {0, 1}), place(1, 1, {1, 1})}})
                          .rounds[0];
  const ChosenOrder chosen = best_order(model, round, 2);
  EXPECT_EQ(chosen.order, default_order(round));
  EXPECT_EQ(chosen.tried, 1);
}

TEST(BestOrder, IsSoundNeverWorseAndBounded) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = random_plan(seed);
    for (const Round& round : plan.rounds) {
      const RoundTimes times = round_times(model, round, plan.world);
      const ChosenOrder chosen = best_order(model, round, plan.world);
      Round split = round;
      set_order(chosen, split.schedule);
      EXPECT_EQ(find_cut_fault(split), "") << "seed " << seed;
      EXPECT_EQ(find_order_fault(split, chosen.order), "") << "seed " << seed;
      EXPECT_EQ(chosen.time,
                simulate_layers(round_times(model, split, plan.world), chosen.order, kOrderLayers));
      EXPECT_LE(chosen.time.sum(),
                simulate_layers(times, default_order(round), kOrderLayers).sum());
      EXPECT_LE(chosen.tried, 96 + kMostCutOrders);
      EXPECT_EQ(best_order(model, round, plan.world).order, chosen.order);
      EXPECT_EQ(best_order(model, round, plan.world, 1).order, default_order(round));
    }
  }
}

}  // namespace
}  // namespace nsp
