#include "nsp/exec/rank_heads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace nsp {
namespace {

using at::Tensor;

// Three rows, one value a head: 10 x row + head.
Tensor rows(std::int64_t heads) {
  return at::arange(3).mul(10).view({3, 1, 1}) + at::arange(heads).view({1, heads, 1});
}

TEST(RankHeads, CutRowsByTheRanksThatWorkOnThem) {
  const RankHeads ranks(3, 2, split_heads({4, 2}, 2));
  EXPECT_EQ(ranks.query(rows(4)).sizes(), (at::IntArrayRef{2, 3, 2, 1}));
  EXPECT_EQ(ranks.query(rows(4))[1][2][0].item<std::int64_t>(), 22);
  EXPECT_EQ(ranks.kv(rows(2)).sizes(), (at::IntArrayRef{2, 3, 1, 1}));
  EXPECT_EQ(ranks.kv(rows(2))[1][2][0].item<std::int64_t>(), 21);
}

// 4 query heads and 2 KV heads on 4 ranks: ranks 0 1 read KV head 0, ranks 2 3 KV head 1.
TEST(RankHeads, OneKvHeadServesSeveralRanks) {
  const RankHeads ranks(3, 4, split_heads({4, 2}, 4));
  const Tensor q = rows(4), k = rows(2);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks.query(q)[rank / 2][rank % 2][2].item<std::int64_t>(), 20 + rank);
    EXPECT_EQ(ranks.kv(k)[rank / 2][rank % 2][2].item<std::int64_t>(), 20 + rank / 2);
  }
  EXPECT_TRUE(ranks.kv(k).is_alias_of(k));
}

// 12 query heads read KV heads 000011 | 112222: copied in runs of two, 0 0 1 | 1 2 2.
TEST(RankHeads, CopiesInRunsCrossRanks) {
  const RankHeads ranks(3, 2, split_heads({12, 3}, 2));
  const Tensor kv = ranks.kv(rows(3));
  const std::int64_t wanted[2][3] = {{0, 0, 1}, {1, 2, 2}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    for (std::int64_t head = 0; head < 3; ++head) {
      EXPECT_EQ(kv[rank][1][head].item<std::int64_t>(), 10 + wanted[rank][head]);
    }
  }
}

// What is packed for the ranks and comes back unchanged holds each KV head `copies` times.
TEST(RankHeads, CopiesOfAKvHeadLieTogether) {
  for (const auto& [heads, degree] : {std::pair(Heads{4, 2}, 4), std::pair(Heads{12, 3}, 2)}) {
    const HeadSplit split = split_heads(heads, degree);
    const RankHeads ranks(3, degree, split);
    const Tensor k = rows(heads.kv);
    const Tensor packed = at::zeros({degree * 3, split.kv, 1}, at::kLong);
    ranks.packed(packed).copy_(ranks.kv(k));
    const Tensor copies = ranks.copies(packed);
    EXPECT_EQ(copies.sizes(), (at::IntArrayRef{3, heads.kv, split.copies, 1}));
    EXPECT_TRUE(copies.eq(k.unsqueeze(2)).all().item<bool>());
  }
}

// 8 ranks, 2 KV heads: 4 ranks a head. What ranges pack is what each rank's own part holds.
TEST(RankHeads, RangesOfMembersAreViews) {
  for (const Heads& heads : {Heads{8, 2}, Heads{8, 8}}) {
    const RankHeads ranks(3, 8, split_heads(heads, 8));
    const Tensor view = ranks.kv(rows(heads.kv));
    const Tensor packed = at::zeros({21, 1, 1}, at::kLong);
    std::int64_t row = 0;
    for (const auto& [begin, end] : {std::pair(0, 5), std::pair(6, 8)}) {  // all but rank 5
      for (const RankHeads::Range& range : ranks.ranges(begin, end)) {
        const std::int64_t count = 3 * (range.end - range.begin);
        ranks.packed(packed.narrow(0, row, count), range).copy_(ranks.members(view, range));
        row += count;
      }
    }
    EXPECT_EQ(row, 21);
    row = 0;
    for (const std::int64_t rank : {0, 1, 2, 3, 4, 6, 7}) {
      EXPECT_TRUE(packed.narrow(0, row, 3).eq(ranks.member(view, rank)).all().item<bool>()) << rank;
      EXPECT_EQ(ranks.member(view, rank)[1][0].item<std::int64_t>(), 10 + rank * heads.kv / 8);
      row += 3;
    }
  }
  EXPECT_EQ(RankHeads(3, 8, split_heads({8, 2}, 8)).ranges(1, 8).size(), 2U);  // 1-3, 4-7
}

}  // namespace
}  // namespace nsp
