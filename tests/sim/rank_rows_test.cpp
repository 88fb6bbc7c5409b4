#include "nsp/sim/rank_rows.h"

#include <gtest/gtest.h>

#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

// Rank 0: half of 101 tokens (50 or 51), a leaf of 30. Rank 1: the other half. Two KV heads.
TEST(RankRows, CountsEachKind) {
  Plan plan = make_plan({.world = 2, .sp_max = 2}, {{place(0, 101, {0, 2}), place(1, 30, {0, 1})}});
  plan.rounds[0].placements[0].mark = Mark::kSave;
  const std::vector<RankRows> rows = rank_rows(plan.rounds[0], 2, 2);
  const std::int64_t half = tokens_of(plan.rounds[0].placements[0], 0);
  EXPECT_EQ(rows[0],
            (RankRows{.tokens = half + 30,
                      .read = half + 30,
                      .exchanged = half,
                      .exchanged_heads = 2 * half,
                      .launched = half,
                      .saved = half,
                      .saved_exchanged = half,
                      .saved_heads = 2 * half}));
  EXPECT_EQ(rows[1].tokens, 101 - half);
  EXPECT_EQ(rows[1].read, 0);
}

TEST(RankRows, CopiedHeadsAndGatheredKeysCount) {
  const Way gather{.degree = 4, .backend = Backend::kGather, .ulysses_degree = 1};
  const Plan plan =
      make_plan({.world = 4, .sp_max = 4}, {{place(0, 400, {0, 4})}, {place(1, 400, 0, gather)}});
  EXPECT_EQ(rank_rows(plan.rounds[0], 4, 2)[0].exchanged_heads, 100 * 4);      // a head a rank
  EXPECT_EQ(rank_rows(plan.rounds[1], 4, 2)[0].exchanged_heads, 100 * 2 * 4);  // the whole node's
}

TEST(RankRows, AreTheRowsOfTheLayout) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Plan plan = random_plan(seed);
    for (const Round& round : plan.rounds) {
      const std::vector<RankRows> rows = rank_rows(round, plan.world, 2);
      for (std::int32_t rank = 0; rank < plan.world; ++rank) {
        std::int64_t tokens = 0;
        for (const Segment& segment : rank_row(round, rank)) {
          tokens += segment.tokens();
        }
        EXPECT_EQ(rows[static_cast<std::size_t>(rank)].tokens, tokens) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace nsp
