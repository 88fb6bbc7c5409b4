#include "nsp/exec/zigzag_rows.h"

#include <gtest/gtest.h>

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// One sequence of 8 tokens on a ring of 2, pieces 0 1 | 2 3 | 4 5 | 6 7: index 0 holds tokens 0 1 6
// 7, index 1 holds 2 3 4 5.
const ZigzagPieces kEven{.ring = 2, .tokens = {{2, 2, 2, 2}}};

// Two sequences on a ring of 2, with empty pieces: 3 tokens as 1 0 1 1, 1 token as 0 0 0 1.
const ZigzagPieces kUneven{.ring = 2, .tokens = {{1, 0, 1, 1}, {0, 0, 0, 1}}};

TEST(ZigzagRows, OnlyLowerPiecesGoToIndicesAbove) {
  EXPECT_EQ(sent_rows(kEven, 0, 1), Counts({0, 1}));
  EXPECT_EQ(sent_rows(kEven, 1, 0), Counts({0, 1, 2, 3}));
  EXPECT_EQ(sent_rows(kEven, 0, 0), Counts({0, 1, 2, 3}));
}

TEST(ZigzagRows, QueriesSeeWholePiecesOfOtherIndices) {
  const ZigzagChunks above = ring_chunks(kEven, 0, 1);  // tokens 6 7 see 2 3 4 5
  EXPECT_EQ(above.queries, Counts({2, 3}));
  EXPECT_EQ(above.keys, Counts({0, 1, 2, 3}));
  const ZigzagChunks below = ring_chunks(kEven, 1, 0);  // tokens 2 3 4 5 see 0 1
  EXPECT_EQ(below.queries, Counts({0, 1, 2, 3}));
  EXPECT_EQ(below.keys, Counts({0, 1}));
}

// Index 0 receives its own rows 0 1 6 7, then 2 3 4 5 of index 1.
TEST(ZigzagRows, GatheredKeysLieByPosition) {
  const ZigzagChunks all = gather_chunks(kEven, 0, true);
  EXPECT_EQ(all.query_lengths, Counts({2, 2}));
  EXPECT_EQ(all.key_lengths, Counts({2, 8}));
  EXPECT_EQ(all.keys, Counts({0, 1, 0, 1, 4, 5, 6, 7, 2, 3}));
  const ZigzagChunks before = gather_chunks(kEven, 0, false);  // nothing before tokens 0 1
  EXPECT_EQ(before.queries, Counts({2, 3}));
  EXPECT_EQ(before.keys, Counts({0, 1, 4, 5, 6, 7}));
}

TEST(ZigzagRows, EmptyPiecesAreNoChunks) {
  EXPECT_EQ(zigzag_tokens(kUneven, 0), 3);  // 1 and 1 of the first, 1 of the second
  EXPECT_EQ(zigzag_tokens(kUneven, 1), 1);
  EXPECT_EQ(own_lengths(kUneven, 0), Counts({2, 1}));
  EXPECT_EQ(own_lengths(kUneven, 1), Counts({1}));
  const ZigzagChunks chunks = ring_chunks(kUneven, 0, 1);  // the second's row has no other to see
  EXPECT_EQ(chunks.queries, Counts({1}));
  EXPECT_EQ(chunks.query_lengths, Counts({1}));
  EXPECT_EQ(gather_chunks(kUneven, 0, true).query_lengths, Counts({1, 1, 1}));
}

// Over all hops, each pair of a query and an earlier piece's key occurs once.
TEST(ZigzagRows, HopsTogetherCoverEveryEarlierPiece) {
  const ZigzagPieces pieces{.ring = 4, .tokens = {{3, 2, 3, 2, 3, 2, 3, 2}}};
  for (std::int32_t index = 0; index < 4; ++index) {
    std::int64_t pairs = 0;
    for (std::int32_t source = 0; source < 4; ++source) {
      if (source != index) {
        const ZigzagChunks chunks = ring_chunks(pieces, index, source);
        pairs += chunks.query_lengths[0] * chunks.key_lengths[0];
      }
    }
    const ZigzagChunks before = gather_chunks(pieces, index, false);
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < before.query_lengths.size(); ++i) {
      expected += before.query_lengths[i] * before.key_lengths[i];
    }
    const auto own = pieces.tokens[0][static_cast<std::size_t>(index)] *
                     pieces.tokens[0][static_cast<std::size_t>(7 - index)];
    EXPECT_EQ(pairs, expected - own) << "index " << index;
  }
}

}  // namespace
}  // namespace nsp
