#include "nsp/exec/block.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "nsp/plan/exchanges.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

Round round_of(std::int32_t world, std::int32_t sp_max, std::vector<Placement> placements) {
  return make_plan({.world = world, .sp_max = sp_max}, {std::move(placements)}).rounds.front();
}

// Two ranks. Sequence 1 has 3 tokens: boundaries floor((i*3 + 1)/2) = 0 2 3. Sequence 0 has 2: 0
// 1 2. Longest first: rank 0 sends 1a 1b 0a (rows 0-2), rank 1 sends 1c 0b (rows 3-4).
TEST(Block, RowsComeBySourceAndAreNeededBySequence) {
  const Round round = round_of(2, 2, {place(0, 2, {0, 2}), place(1, 3, {0, 2})});
  const Block block = make_blocks(round, 1, {head_split(2)}).front();
  EXPECT_EQ(block.lengths, Counts({3, 2}));
  EXPECT_EQ(block.rank_tokens, Counts({3, 2}));
  EXPECT_EQ(block.tokens, 2);
  EXPECT_EQ(block.to_sequences, Counts({0, 1, 3, 2, 4}));
}

TEST(Block, LevelsFollowEachOtherInTheRow) {
  const Round round =
      round_of(4, 4, {place(0, 8, {0, 4}), place(1, 4, {0, 2}), place(2, 5, {1, 1})});
  const std::vector<Block> blocks = make_blocks(round, 1, {head_split(4), head_split(2)});
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].begin, 0);
  EXPECT_EQ(blocks[1].begin, 2);
  EXPECT_EQ(blocks[2].begin, 4);
  EXPECT_EQ(blocks[2].lengths, Counts({5}));
}

TEST(Block, ANodeWithoutSequencesStillHasItsBlock) {
  const Round round = round_of(4, 2, {place(0, 4, {0, 2})});
  const std::vector<Block> blocks = make_blocks(round, 3, {head_split(2)});
  EXPECT_EQ(blocks[0].first_rank, 2);
  EXPECT_EQ(blocks[0].tokens, 0);
  EXPECT_EQ(blocks[0].rank_tokens, Counts({0, 0}));
  EXPECT_EQ(blocks[1].lengths, Counts({1}));  // the dummy token
}

TEST(Block, AFirstPartTakesTheLongestLeafSequences) {
  const Round round = round_of(
      2, 2, {place(0, 8, {0, 2}), place(1, 5, {0, 1}), place(2, 7, {0, 1}), place(3, 2, {0, 1})});
  Block leaf = make_blocks(round, 0, {head_split(2)}).back();
  const Block first = take_first(leaf, 2);
  EXPECT_EQ(first.begin, 4);
  EXPECT_EQ(first.lengths, Counts({7, 5}));
  EXPECT_EQ(first.tokens, 12);
  EXPECT_EQ(leaf.begin, 16);
  EXPECT_EQ(leaf.lengths, Counts({2}));
  EXPECT_EQ(leaf.tokens, 2);
}

TEST(Block, AWindowThatHoldsEverySequenceIsNone) {
  const Round round = round_of(2, 2, {place(0, 9, {0, 2}), place(1, 3, {0, 2})});
  const std::vector<Block> blocks = make_blocks(round, 0, {head_split(2)});
  EXPECT_EQ(window_within(blocks[0], 8), 8);
  EXPECT_EQ(window_within(blocks[0], 9), 0);
  EXPECT_EQ(window_within(blocks[0], 0), 0);
  EXPECT_EQ(window_within(blocks[1], 4), 0);  // no sequence at all
}

// 8 tokens on 4 ranks as 2 x 2: pieces of 2 tokens, one of each for an inner rank. Ring index 0
// (ranks 0 and 1) holds tokens 0 1 6 7: they arrive as 0 6 | 1 7.
TEST(Block, InnerRanksOfUspHoldThePiecesOfTheirRingIndex) {
  const Round round = round_of(4, 4, {place(0, 8, 0, {4, Backend::kUspRing, 2})});
  const Block usp = make_blocks(round, 1, exchanged_ways(round)).front();
  EXPECT_EQ(usp.lengths, Counts({8}));
  EXPECT_EQ(usp.tokens, 2);
  EXPECT_EQ(usp.pieces.tokens, (std::vector<Counts>{{2, 2, 2, 2}}));
  const Block inner = inner_block(usp);
  EXPECT_EQ(inner.degree, 2);
  EXPECT_EQ(inner.level_degree, 4);
  EXPECT_EQ(inner.first_rank, 0);
  EXPECT_EQ(inner.rank_tokens, Counts({2, 2}));
  EXPECT_EQ(inner.to_sequences, Counts({0, 2, 1, 3}));
  EXPECT_EQ(inner.lengths, Counts({4}));
  EXPECT_EQ(inner.rank, 1);
}

TEST(Block, BlocksCoverTheRow) {
  const Round round = round_of(8,
                               8,
                               {place(0, 137, {0, 8}),
                                place(1, 41, {4, 4}),
                                place(2, 89, {6, 1}),
                                place(3, 55, 0, {8, Backend::kUspRing, 2}),
                                place(4, 21, 0, {8, Backend::kGather, 1}),
                                place(5, 9, {0, 8})});
  Round cut = round;
  cut.schedule.cuts = {{.degree = 8, .tokens = 54}};
  for (std::int32_t rank = 0; rank < 8; ++rank) {
    std::int64_t rows = 0;
    for (const Segment& segment : rank_row(round, rank)) {
      rows += segment.tokens();
    }
    std::int64_t next = 0;
    for (const Block& block : make_blocks(round, rank, exchanged_ways(round))) {
      EXPECT_EQ(block.begin, next);
      next += block.tokens;
    }
    EXPECT_EQ(next, rows);
    std::vector<Block> blocks = make_blocks(cut, rank, exchanged_ways(cut));
    std::ranges::sort(blocks, {}, [](const Block& b) { return std::pair(b.begin, b.tokens); });
    next = 0;
    for (const Block& block : blocks) {
      EXPECT_EQ(block.begin, next);
      next += block.tokens;
    }
    EXPECT_EQ(next, rows);
  }
}

// The long wave, 5 and 9 tokens, lies before the short one, of 2 and 3; blocks go the other way.
TEST(Block, WavesAreBlocksOfTheirOwn) {
  Round round = round_of(
      4, 2, {place(0, 2, {0, 2}), place(1, 5, {0, 2}), place(2, 3, {0, 2}), place(3, 9, {2, 2})});
  round.schedule.cuts = {{.degree = 2, .tokens = 3}};
  const std::vector<Block> blocks = make_blocks(round, 0, {head_split(2)});
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].wave, Wave::kShort);
  EXPECT_EQ(blocks[0].lengths, Counts({3, 2}));
  EXPECT_EQ(blocks[0].begin, 3);
  EXPECT_EQ(blocks[0].tokens, 1 + 1);
  EXPECT_EQ(blocks[0].level, (LevelRows{.most = 3, .most_elsewhere = 3}));
  EXPECT_EQ(blocks[1].wave, Wave::kLong);
  EXPECT_EQ(blocks[1].lengths, Counts({5}));
  EXPECT_EQ(blocks[1].begin, 0);
  EXPECT_EQ(blocks[1].tokens, 3);
  EXPECT_EQ(blocks[1].level, (LevelRows{.most = 5, .most_elsewhere = 5}));
  // A node without short sequences has the block all the same.
  EXPECT_EQ(make_blocks(round, 2, {head_split(2)})[0].lengths, Counts());
}

// Ranks 0 and 1 hold 3 and 2 rows, ranks 2 and 3 4 each of another node: most is 4, and 4 lie
// elsewhere for rank 2. All ranks say the same.
TEST(Block, KnowsTheLevelBeyondItsNode) {
  const Round round =
      round_of(4, 2, {place(0, 2, {0, 2}), place(1, 3, {0, 2}), place(2, 8, {2, 2})});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const Block block = make_blocks(round, rank, {head_split(2)}).front();
    EXPECT_EQ(block.level, (LevelRows{.most = 4, .most_elsewhere = 4}));
    EXPECT_EQ(block.rank, rank);
  }
}

}  // namespace
}  // namespace nsp
