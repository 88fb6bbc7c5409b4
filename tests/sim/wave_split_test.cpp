#include "nsp/sim/wave_split.h"

#include <gtest/gtest.h>

#include "nsp/cost/make_profile.h"
#include "nsp/plan/make_plan.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

using Lengths = std::vector<std::int64_t>;

// Degree 2 on ranks 0 and 1: what precedes 2048 and 2000 tokens (prologue 2 a token forward, 1
// backward: 12,144) is hidden by 100 and 300 tokens (work of 1 and 6 blocks, 2000 forward, 4000
// backward each), not by 100 alone. The other node has one sequence and cannot be cut.
TEST(WaveSplit, FewLengthsComeIntoQuestion) {
  const CostModel model(simple_model(), simple_profile(), 4);
  const Round round = make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4},
                                {{place(0, 2048, {0, 2}),
                                  place(1, 2000, {0, 2}),
                                  place(2, 300, {0, 2}),
                                  place(3, 100, {0, 2}),
                                  place(4, 900, {2, 2}),
                                  place(5, 77, {0, 4}),
                                  place(6, 77, {0, 4})}})
                          .rounds[0];
  const RoundTimes times = round_times(model, round, 4);
  const WaveSplit split(model, round, times);
  EXPECT_EQ(split.lengths(2), (Lengths{100, 300, 2000}));
  EXPECT_EQ(split.lengths(4), Lengths());  // of one length
}

// What the search plays is what the plan with these cuts costs.
TEST(WaveSplit, ItsTimesAreThoseOfTheScheduledRound) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  std::size_t cuts = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Plan plan = random_plan(seed);
    for (Round round : plan.rounds) {
      const RoundTimes times = round_times(model, round, plan.world);
      const WaveSplit split(model, round, times);
      std::vector<LevelCut> chosen;
      for (const LevelWave& wave : exchanged_waves(round)) {
        for (const std::int64_t tokens : split.lengths(wave.degree)) {
          chosen.push_back({.degree = wave.degree, .tokens = tokens});
          break;
        }
      }
      cuts += chosen.size();
      round.schedule.cuts = chosen;
      EXPECT_EQ(find_cut_fault(round), "") << "seed " << seed;
      const RoundTimes found = split.times(chosen);
      const RoundTimes expected = round_times(model, round, plan.world);
      ASSERT_EQ(found.levels.size(), expected.levels.size()) << "seed " << seed;
      for (std::size_t level = 0; level < found.levels.size(); ++level) {
        EXPECT_EQ(found.levels[level].degree, expected.levels[level].degree);
        EXPECT_EQ(found.levels[level].wave, expected.levels[level].wave);
        for (std::size_t node = 0; node < found.levels[level].nodes.size(); ++node) {
          EXPECT_EQ(found.levels[level].nodes[node].cost.sum(),
                    expected.levels[level].nodes[node].cost.sum());
        }
      }
    }
  }
  EXPECT_GT(cuts, 20U);
}

}  // namespace
}  // namespace nsp
