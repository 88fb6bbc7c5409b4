#include "nsp/plan/wave.h"

#include <gtest/gtest.h>

#include "nsp/plan/check.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/layout.h"
#include "random_cuts.h"
#include "random_plan.h"

namespace nsp {
namespace {

// Degree 4 runs whole; degree 2 has 9 tokens by gather on one node, 5 and 4 by ulysses on another.
Round cut_round() {
  Round round = make_plan({.world = 4, .sp_max = 4},
                          {{place(0, 30, {0, 4}),
                            place(1, 4, {2, 2}),
                            place(2, 5, {2, 2}),
                            place(3, 9, 0, {2, Backend::kGather, 1}),
                            place(4, 7, {1, 1})}})
                    .rounds[0];
  round.schedule.cuts = {{.degree = 2, .tokens = 4}};
  return round;
}

TEST(Wave, ACutPartsItsLevelByLength) {
  const Round round = cut_round();
  const std::vector<LevelWave> expected = {{4, Wave::kLong}, {2, Wave::kShort}, {2, Wave::kLong}};
  EXPECT_EQ(exchanged_waves(round), expected);
  EXPECT_EQ(waves_of(head_split(4), round), (std::vector<Wave>{Wave::kLong}));
  EXPECT_EQ(waves_of(head_split(2), round), (std::vector<Wave>{Wave::kShort, Wave::kLong}));
  EXPECT_EQ(waves_of({2, Backend::kGather, 1}, round), (std::vector<Wave>{Wave::kLong}));
  EXPECT_EQ(waves_of({2, Backend::kRing, 1}, round), (std::vector<Wave>{Wave::kLong}));  // no use
}

TEST(Wave, TheShortOneIsIssuedFirst) {
  const std::vector<Issue> expected = {{Phase::kPrologue, 4},
                                       {Phase::kPrologue, 2, Wave::kShort},
                                       {Phase::kPrologue, 2},
                                       {Phase::kCompute, 1},
                                       {Phase::kCompute, 4},
                                       {Phase::kEpilogue, 4},
                                       {Phase::kCompute, 2, Wave::kShort},
                                       {Phase::kEpilogue, 2, Wave::kShort},
                                       {Phase::kCompute, 2},
                                       {Phase::kEpilogue, 2}};
  EXPECT_EQ(default_order(cut_round()), expected);
}

TEST(Wave, AnOrderRunsEachOnce) {
  const Round round = cut_round();
  std::vector<Issue> order = default_order(round);
  EXPECT_EQ(find_order_fault(round, order), "");
  std::swap(order[2], order[8]);
  EXPECT_EQ(find_order_fault(round, order), "compute:2 is issued where prologue:2 is due");
  order = default_order(round);
  order.erase(order.begin() + 7);
  EXPECT_EQ(find_order_fault(round, order), "epilogue:2:short is never issued");
  order = default_order(round);
  order[0].wave = Wave::kShort;
  EXPECT_EQ(find_order_fault(round, order),
            "prologue:4:short is issued, but no placement has degree 4 and is short under a cut of "
            "it");
}

// Whatever their marks, long sequences lie before short ones.
TEST(Wave, RowsOfOneLieTogether) {
  Round round = cut_round();
  EXPECT_EQ(row_order(round), (std::vector<std::int32_t>{0, 2, 1, 3, 4}));
  round.placements[1].mark = Mark::kSave;
  EXPECT_EQ(row_order(round), (std::vector<std::int32_t>{0, 2, 1, 3, 4}));
  round.schedule.cuts.clear();
  EXPECT_EQ(row_order(round), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(Wave, FaultsOfCutsSayWhatIsWrong) {
  const auto fault = [](std::vector<LevelCut> cuts) {
    Round round = cut_round();
    round.schedule.cuts = std::move(cuts);
    return find_cut_fault(round);
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({{2, 4}}), "");
  EXPECT_EQ(fault({{2, 8}}), "");
  EXPECT_EQ(fault({{2, 3}}),
            "the cut of degree 2 at 3 tokens leaves no sequence that is that short");
  EXPECT_EQ(fault({{2, 9}}), "the cut of degree 2 at 9 tokens leaves no sequence that is longer");
  EXPECT_EQ(fault({{4, 30}, {2, 4}}),
            "the cut of degree 4 at 30 tokens leaves no sequence that is longer");
  const std::string order = "cuts must name degrees above 1, each once, the largest first";
  EXPECT_EQ(fault({{2, 4}, {4, 8}}), order);
  EXPECT_EQ(fault({{2, 4}, {2, 5}}), order);
  EXPECT_EQ(fault({{2, 4}, {1, 7}}), order);
}

TEST(Wave, PlansWithCutsAreSound) {
  std::size_t cuts = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan made = seed % 2 == 0 ? random_plan(seed) : random_ways_plan(seed);
    const Plan plan = with_random_cuts(made, seed);
    EXPECT_EQ(find_violations(plan), std::vector<std::string>{}) << "seed " << seed;
    for (const Round& round : plan.rounds) {
      cuts += round.schedule.cuts.size();
    }
  }
  EXPECT_GT(cuts, 50U);
}

}  // namespace
}  // namespace nsp
