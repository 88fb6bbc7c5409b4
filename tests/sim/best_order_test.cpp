#include "nsp/sim/best_order.h"

#include <gtest/gtest.h>

#include "nsp/cost/make_profile.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

// One sequence over both ranks; rank 0 has a long leaf and few tokens, rank 1 short leaves and many
// tokens, so a long dense part. Leaves first, rank 1's dense part waits for rank 0's leaf by way of
// the level's epilogue; the level first, nobody waits.
TEST(BestOrder, LevelsComeBeforeALoneLongLeaf) {
  Profile profile = simple_profile();
  profile.dense_forward.token_seconds = 100e-9;
  profile.dense_backward.token_seconds = 200e-9;
  const CostModel model(simple_model(), profile, 2);
  std::vector<Placement> placements = {place(0, 256, {0, 2}), place(1, 1024, {0, 1})};
  for (std::int64_t sequence = 2; sequence < 32; ++sequence) {
    placements.push_back(place(sequence, 128, {1, 1}));
  }
  const Round round =
      make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {placements}).rounds[0];
  const ChosenOrder chosen = best_order(model, round, 2);
  EXPECT_EQ(chosen.order.back(), (Issue{Phase::kCompute, 1}));
  // Prologue, compute of degree 2, thirty leaves, dense; the epilogue hides.
  const std::int64_t dense = (128 + 30 * 128) * 100;
  EXPECT_EQ(chosen.time.forward, 517 + 6000 + 30 * 4000 + dense);
  EXPECT_EQ(simulate_layer(model, round, 2, default_order(round)).forward,
            36 * 4000 + 6000 + 261 + dense);
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
      const ChosenOrder chosen = best_order(times, round);
      EXPECT_EQ(find_order_fault(round, chosen.order), "") << "seed " << seed;
      EXPECT_EQ(chosen.time, simulate_layer(times, chosen.order));
      EXPECT_LE(chosen.time.sum(), simulate_layer(times, default_order(round)).sum());
      EXPECT_LE(chosen.tried, 96);
      EXPECT_EQ(best_order(times, round).order, chosen.order);
      EXPECT_EQ(best_order(times, round, 1).order, default_order(round));
    }
  }
}

}  // namespace
}  // namespace nsp
