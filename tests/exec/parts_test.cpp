#include "nsp/exec/parts.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "../plan/random_marks.h"
#include "../plan/random_plan.h"
#include "nsp/plan/exchanges.h"
#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

using Numbers = std::vector<std::int64_t>;

Placement marked(Placement placement, Mark mark) {
  placement.mark = mark;
  return placement;
}

Parts parts_of(const Block& block, const Round& round, std::int32_t rank) {
  const Backend backend = block.degree == 1 ? Backend::kLocal : Backend::kUlysses;
  return cut_by_marks(block, backend, round, rank);
}

TEST(Parts, ASplitNodeIsCutByHand) {
  // Sequences of 5, 4 and 3 tokens on ranks 0 and 1. Pieces of rank 0 and 1: 0 (5): 2, 3;
  // 1 (4): 2, 2; 2 (3): 1, 2. Saved are 1 and 2, so the row is 1, 2, 0.
  const Plan plan = make_plan({.world = 2, .sp_max = 2},
                              {{place(0, 5, {0, 2}),
                                marked(place(1, 4, {0, 2}), Mark::kSave),
                                marked(place(2, 3, {0, 2}), Mark::kSave)}});
  const Block block = make_blocks(plan.rounds[0], 1, {head_split(2)})[0];
  EXPECT_EQ(block.lengths, (Numbers{4, 3, 5}));
  const Parts parts = parts_of(block, plan.rounds[0], 1);
  EXPECT_EQ(parts.save.lengths, (Numbers{4, 3}));
  EXPECT_EQ(parts.save.rank_tokens, (Numbers{3, 4}));
  EXPECT_EQ(parts.save.begin, 0);
  EXPECT_EQ(parts.save.tokens, 4);
  EXPECT_EQ(parts.save.to_sequences, (Numbers{0, 1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(parts.rest.lengths, (Numbers{5}));
  EXPECT_EQ(parts.rest.begin, 4);
  EXPECT_EQ(parts.rest.tokens, 3);
  EXPECT_EQ(parts.rest.to_sequences, (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(parts.save_qkv.tokens, 0);
  EXPECT_TRUE(parts.any_saved);
  EXPECT_TRUE(parts.any_rest);
}

TEST(Parts, HoldEveryRowOfTheirBlockOnce) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = with_random_marks(random_plan(seed), seed);
    const Round& round = plan.rounds[0];
    for (const std::int32_t rank : {0, plan.world - 1}) {
      for (const Block& block : make_blocks(round, rank, exchanged_ways(round))) {
        const Parts parts = parts_of(block, round, rank);
        std::int64_t next = block.begin, rows = 0;
        for (const Block* part : {&parts.save_qkv, &parts.save, &parts.rest}) {
          EXPECT_EQ(part->begin, next);
          next += part->tokens;
          rows += node_rows(*part);
          const Numbers& lengths = part->lengths;
          EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), 0L), node_rows(*part));
        }
        EXPECT_EQ(next, block.begin + block.tokens);
        EXPECT_EQ(rows, node_rows(block));
      }
    }
  }
}

TEST(Parts, OffloadedRowsAreTheLastOnesSaved) {
  // Leaf rows: 6 tokens that keep q, k and v (there: the output alone), 4 saved, 3 offloaded, 5
  // recomputed. Of the node's sequence of 9 tokens rank 0 has 4.
  const Plan plan = make_plan({.world = 2, .sp_max = 2},
                              {{marked(place(0, 9, {0, 2}), Mark::kOffload),
                                marked(place(1, 3, {0, 1}), Mark::kOffload),
                                marked(place(2, 6, {0, 1}), Mark::kSaveQkv),
                                marked(place(3, 4, {0, 1}), Mark::kSave),
                                place(4, 5, {0, 1})}});
  const Round& round = plan.rounds[0];
  const std::vector<Block> blocks = make_blocks(round, 0, {head_split(2)});
  const Parts level = parts_of(blocks[0], round, 0), leaf = parts_of(blocks[1], round, 0);
  EXPECT_EQ(level.offloaded_rows, 4);
  EXPECT_EQ(level.stashed_rows(), 0);
  EXPECT_EQ(leaf.save.lengths, (Numbers{6, 4, 3}));
  EXPECT_EQ(leaf.offloaded_rows, 3);
  EXPECT_EQ(leaf.stashed_rows(), 10);
  EXPECT_EQ(leaf.rest.tokens, 5);
}

TEST(Parts, ADummyTokenIsRecomputedAndALevelIsSeenByAllRanks) {
  const Plan plan =
      make_plan({.world = 4, .sp_max = 2}, {{marked(place(0, 6, {0, 2}), Mark::kSave)}});
  const Round& round = plan.rounds[0];
  const std::vector<Block> blocks = make_blocks(round, 3, {head_split(2)});
  const Parts level = parts_of(blocks[0], round, 3);
  EXPECT_TRUE(level.any_saved);  // by ranks 0 and 1
  EXPECT_FALSE(level.any_rest);
  EXPECT_EQ(level.saved_rows(), 0);
  const Parts leaf = parts_of(blocks[1], round, 3);
  EXPECT_EQ(leaf.rest.tokens, 1);
  EXPECT_FALSE(leaf.any_saved);
}

TEST(Parts, LeavesHaveNoUseForSaveQkv) {
  const Plan plan = make_plan({.world = 1}, {{marked(place(0, 6, {0, 1}), Mark::kSaveQkv)}});
  const Parts leaf = parts_of(make_blocks(plan.rounds[0], 0, {})[0], plan.rounds[0], 0);
  EXPECT_EQ(leaf.save.tokens, 6);
  EXPECT_EQ(leaf.save_qkv.tokens, 0);
}

}  // namespace
}  // namespace nsp
