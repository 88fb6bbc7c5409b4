#include "nsp/exec/heads.h"

#include <string>

#include <gtest/gtest.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

TEST(Heads, KvHeadsAreSplitWhereTheyCanBe) {
  EXPECT_EQ(split_heads({8, 4}, 2), (HeadSplit{.query = 4, .kv = 2, .copies = 1}));
  EXPECT_EQ(split_heads({4, 4}, 4), (HeadSplit{.query = 1, .kv = 1, .copies = 1}));
}

TEST(Heads, KvHeadsAreRepeatedWhereTheDegreeIsLarger) {
  EXPECT_EQ(split_heads({8, 2}, 4), (HeadSplit{.query = 2, .kv = 1, .copies = 2}));
  EXPECT_EQ(split_heads({8, 1}, 8), (HeadSplit{.query = 1, .kv = 1, .copies = 8}));
}

// 12 query heads read KV heads 0000 1111 2222; halves 000011 | 112222 are, in runs of two, 001 |
// 122.
TEST(Heads, KvHeadsThatTheDegreeDoesNotDivideAreRepeatedInRuns) {
  EXPECT_EQ(split_heads({12, 3}, 2), (HeadSplit{.query = 6, .kv = 3, .copies = 2}));
}

TEST(Heads, EveryQueryHeadReadsItsOwnKvHead) {
  for (const std::int64_t kv : {1, 2, 3, 4, 6, 12, 24}) {
    for (const std::int32_t degree : {1, 2, 4, 8}) {
      const HeadSplit split = split_heads({24, kv}, degree);
      EXPECT_EQ(split.kv * degree, kv * split.copies);
      for (std::int64_t head = 0; head < 24; ++head) {
        const std::int64_t rank = head / split.query;
        const std::int64_t local = head % split.query / (split.query / split.kv);
        EXPECT_EQ((rank * split.kv + local) / split.copies, head / (24 / kv));
      }
    }
  }
}

TEST(Heads, ADegreeThatDoesNotDivideNamesTheAllowedOnes) {
  try {
    split_heads({4, 4}, 8);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(std::string(error.what()),
              "degree 8: must divide the 4 query heads; allowed degrees are 1, 2, 4");
  }
}

TEST(Heads, BadCountsAreRefused) {
  EXPECT_THROW(check_heads({0, 1}), BadInput);
  EXPECT_THROW(check_heads({8, 0}), BadInput);
  EXPECT_THROW(check_heads({8, 3}), BadInput);
  EXPECT_NO_THROW(check_heads({8, 2}));
}

}  // namespace
}  // namespace nsp
