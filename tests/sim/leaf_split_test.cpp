#include "nsp/sim/leaf_split.h"

#include <gtest/gtest.h>

#include "nsp/cost/make_profile.h"
#include "nsp/plan/check.h"
#include "nsp/plan/make_plan.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

// World 4, two trees: sequence 0 over ranks 0 and 1 (prologue 517 forward, 261 backward), leaves of
// 4000 (8000) each: three on rank 0, none on rank 1, one on rank 2.
TEST(LeafSplit, TheFewestLeavesThatHideTheFirstPrologue) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Round round = make_plan({.world = 4, .sp_max = 2, .ranks_per_host = 2},
                                {{place(0, 256, {0, 2}),
                                  place(1, 128, {0, 1}),
                                  place(2, 128, {0, 1}),
                                  place(3, 128, {0, 1}),
                                  place(4, 128, {2, 1})}})
                          .rounds[0];
  const RoundTimes times = round_times(model, round, 4);
  const LeafSplit split(model, round, 4);
  const auto leaf_first = [&](std::int64_t halves) {
    return split.leaf_first(times, {{.degree = 2}}, halves);
  };
  EXPECT_EQ(leaf_first(0), (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(leaf_first(2), (std::vector<std::int32_t>{1, 0, 0, 0}));
  EXPECT_EQ(leaf_first(16), (std::vector<std::int32_t>{2, 0, 0, 0}));
  EXPECT_EQ(leaf_first(999), (std::vector<std::int32_t>{3, 0, 0, 0}));
  const RoundTimes cut = split.times(times, {1, 0, 0, 0});
  EXPECT_EQ(cut.leaf_first[0].cost.compute, (Passes{.forward = 4000, .backward = 8000}));
  EXPECT_EQ(cut.levels.back().nodes[0].cost.compute, (Passes{.forward = 8000, .backward = 16000}));
  EXPECT_FALSE(split.times(times, {3, 0, 0, 0}).levels.back().nodes[0].active);
}

// What the search plays is what the plan with this leaf_first costs.
TEST(LeafSplit, ItsTimesAreThoseOfTheScheduledRound) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Plan plan = random_plan(seed);
    for (Round& round : plan.rounds) {
      const RoundTimes times = round_times(model, round, plan.world);
      const LeafSplit split(model, round, plan.world);
      round.schedule.leaf_first = split.leaf_first(times, exchanged_waves(round), 3);
      const RoundTimes found = split.times(times, round.schedule.leaf_first);
      const RoundTimes expected = round_times(model, round, plan.world);
      ASSERT_EQ(found.leaf_first.size(), expected.leaf_first.size()) << "seed " << seed;
      for (std::size_t rank = 0; rank < found.leaf_first.size(); ++rank) {
        EXPECT_EQ(found.leaf_first[rank].cost.compute, expected.leaf_first[rank].cost.compute);
        EXPECT_EQ(found.levels.back().nodes[rank].cost.compute,
                  expected.levels.back().nodes[rank].cost.compute);
      }
    }
    seal(plan);
    EXPECT_EQ(find_violations(plan), std::vector<std::string>{}) << "seed " << seed;
  }
}

}  // namespace
}  // namespace nsp
