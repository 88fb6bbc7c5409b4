#include "nsp/plan/layout.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "random_plan.h"

namespace nsp {
namespace {

// Seven tokens on two ranks: cuts at floor(7/2) = 3 for even sequences, floor(8/2) = 4 for odd
// ones.
TEST(Layout, TheRemainderTakesTurns) {
  EXPECT_EQ(boundary(7, 0, 2, 1), 3);
  EXPECT_EQ(boundary(7, 1, 2, 1), 4);
  EXPECT_EQ(boundary(7, 1, 2, 2), 7);
  EXPECT_EQ(boundary(7, 1, 2, 0), 0);
}

// Rank 1 of 4 holds, root to leaf: piece 1 of sequence 2 (8 tokens on 4: [2,4)), then on its pair
// the longer sequence 1 (5 tokens, c = 1: [3,5)) before sequence 0 (2 tokens: [1,2)), then its
// leaf.
TEST(Layout, ARowRunsFromRootToLeafLongestFirst) {
  const Plan plan = make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4},
                              {{place(0, 2, {0, 2}),
                                place(1, 5, {0, 2}),
                                place(2, 8, {0, 4}),
                                place(3, 6, {1, 1}),
                                place(4, 9, {3, 1})}});
  const Round& round = plan.rounds[0];
  const std::vector<Segment> row = rank_row(round, 1);
  ASSERT_EQ(row.size(), 4U);
  EXPECT_EQ(row[0], (Segment{2, 2, 4, 4, Backend::kUlysses, 2}));
  EXPECT_EQ(row[1], (Segment{1, 3, 5, 2, Backend::kUlysses, 1}));
  EXPECT_EQ(row[2], (Segment{0, 1, 2, 2, Backend::kUlysses, 0}));
  EXPECT_EQ(row[3], (Segment{3, 0, 6, 1, Backend::kLocal, 3}));
  EXPECT_EQ(rank_tokens(round, 4), (std::vector<std::int64_t>{1 + 3 + 2, 1 + 2 + 2 + 6, 2, 2 + 9}));
}

TEST(Layout, EqualLengthsStandByIndex) {
  const Plan plan = make_plan({.world = 1}, {{place(0, 3, {0, 1}), place(1, 3, {0, 1})}});
  EXPECT_EQ(row_order(plan.rounds[0]), (std::vector<std::int32_t>{0, 1}));
}

TEST(Layout, ARankWithoutTokensHoldsOneDummy) {
  const Plan plan =
      make_plan({.world = 8, .sp_max = 8, .ranks_per_host = 8}, {{place(0, 1, {0, 8})}});
  int owners = 0;
  for (std::int32_t rank = 0; rank < 8; ++rank) {
    const std::vector<Segment> row = rank_row(plan.rounds[0], rank);
    ASSERT_EQ(row.size(), 1U);
    EXPECT_EQ(row[0].tokens(), 1);
    owners += row[0].dummy() ? 0 : 1;
    if (row[0].dummy()) {
      EXPECT_EQ(row[0].sequence, -1);
      EXPECT_EQ(row[0].degree, 1);
    }
  }
  EXPECT_EQ(owners, 1);
}

// 16 tokens in 4 pieces of a ring of 2: rank 0 owns the first and the last, rank 1 the middle two.
TEST(Layout, GatherAndRingCutInZigzag) {
  for (const Backend backend : {Backend::kGather, Backend::kRing}) {
    const Round round{.placements = {place(0, 16, 2, {.degree = 2, .backend = backend})}};
    EXPECT_EQ(rank_row(round, 2),
              (std::vector<Segment>{{0, 0, 4, 2, backend, 0}, {0, 12, 16, 2, backend, 0}}));
    EXPECT_EQ(rank_row(round, 3),
              (std::vector<Segment>{{0, 4, 8, 2, backend, 0}, {0, 8, 12, 2, backend, 0}}));
  }
}

// Degree 4 = ring of 2 over 2 inner ranks: the pieces of ring index 0 are [0, 4) and [12, 16), and
// its second inner rank, rank 1, owns the second half of each.
TEST(Layout, UspCutsEachPieceOverItsInnerRanks) {
  const Way way{.degree = 4, .backend = Backend::kUspRing, .ulysses_degree = 2};
  const Round round{.placements = {place(0, 16, 0, way)}};
  const Backend usp = Backend::kUspRing;
  EXPECT_EQ(rank_row(round, 1),
            (std::vector<Segment>{{0, 2, 4, 4, usp, 0}, {0, 14, 16, 4, usp, 0}}));
  EXPECT_EQ(rank_row(round, 2),
            (std::vector<Segment>{{0, 4, 6, 4, usp, 0}, {0, 8, 10, 4, usp, 0}}));
  EXPECT_EQ(rank_tokens(round, 4), (std::vector<std::int64_t>{4, 4, 4, 4}));
}

// Rank 0 has leaves of 5, 9 and 9 tokens: the two longest run first, whatever their order here.
TEST(Layout, TheLongestLeavesOfARankRunFirst) {
  Round round{.placements = {place(0, 5, {0, 1}),
                             place(1, 9, {0, 1}),
                             place(2, 9, {0, 1}),
                             place(3, 9, {1, 1}),
                             place(4, 20, {0, 2})}};
  EXPECT_EQ(runs_first(round), std::vector<bool>(5, false));
  round.schedule.leaf_first = {2, 0};
  EXPECT_EQ(runs_first(round), (std::vector<bool>{false, true, true, false, false}));
}

TEST(Layout, PiecesOfEveryWayJoin) {
  const std::vector<Backend> all = {
      Backend::kUlysses, Backend::kGather, Backend::kRing, Backend::kUspRing, Backend::kUspGather};
  const WayLimits limits{.heads = 8, .ranks_per_host = 4, .sp_max = 16};
  for (const Way& way : allowed_ways(limits, all)) {
    for (std::int64_t tokens = 1; tokens < 100; tokens += 7) {
      const Placement placement = place(5, tokens, 0, way);
      std::vector<int> owners(static_cast<std::size_t>(tokens), 0);
      for (std::int32_t i = 0; i < way.degree; ++i) {
        std::int64_t count = 0;
        for (const Segment& piece : pieces_of(placement, i)) {
          count += piece.tokens();
          for (std::int64_t t = piece.begin; t < piece.end; ++t) {
            ++owners[static_cast<std::size_t>(t)];
          }
        }
        EXPECT_EQ(count, tokens_of(placement, i));
      }
      EXPECT_EQ(owners, std::vector<int>(owners.size(), 1)) << tokens;
    }
  }
}

TEST(Layout, EveryTokenHasOneOwner) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = random_plan(seed);
    std::map<std::int64_t, std::int64_t> tokens;  // sequence -> tokens
    std::map<std::pair<std::int64_t, std::int64_t>, int> owners;
    for (const Round& round : plan.rounds) {
      for (const Placement& placement : round.placements) {
        tokens[placement.sequence] = placement.tokens;
      }
      for (std::int32_t rank = 0; rank < plan.world; ++rank) {
        for (const Segment& segment : rank_row(round, rank)) {
          for (std::int64_t t = segment.begin; !segment.dummy() && t < segment.end; ++t) {
            ++owners[{segment.sequence, t}];
          }
        }
      }
    }
    const auto add = [](std::int64_t sum, const auto& entry) { return sum + entry.second; };
    const auto sum = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}, add);
    ASSERT_EQ(std::ssize(owners), sum) << "seed " << seed;
    for (const auto& [token, count] : owners) {
      ASSERT_EQ(count, 1) << "seed " << seed;
      ASSERT_LT(token.second, tokens.at(token.first)) << "seed " << seed;
    }
  }
}

TEST(Layout, LevelsAreContiguousBlocksAndTokensSum) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = random_plan(seed);
    for (const Round& round : plan.rounds) {
      const std::vector<std::int64_t> tokens = rank_tokens(round, plan.world);
      for (std::int32_t rank = 0; rank < plan.world; ++rank) {
        const std::vector<Segment> row = rank_row(round, rank);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
          sum += row[i].dummy() ? 0 : row[i].tokens();
          if (i > 0) {
            ASSERT_LE(row[i].degree, row[i - 1].degree) << "seed " << seed;
          }
        }
        ASSERT_EQ(sum, tokens[static_cast<std::size_t>(rank)]) << "seed " << seed;
      }
    }
  }
}

TEST(Layout, PiecesDifferByOneTokenAtMost) {
  for (std::int64_t tokens = 1; tokens < 40; ++tokens) {
    for (std::int64_t sequence = 0; sequence < 9; ++sequence) {
      for (std::int64_t i = 0; i < 8; ++i) {
        const std::int64_t piece =
            boundary(tokens, sequence, 8, i + 1) - boundary(tokens, sequence, 8, i);
        EXPECT_GE(piece, tokens / 8);
        EXPECT_LE(piece, tokens / 8 + 1);
      }
    }
  }
}

}  // namespace
}  // namespace nsp
