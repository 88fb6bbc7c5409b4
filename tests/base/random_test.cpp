#include "nsp/base/random.h"

#include <array>

#include <gtest/gtest.h>

namespace nsp {
namespace {

// First outputs of the reference SplitMix64 for seed 1234567.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
}

TEST(Random, BelowStaysBelowAndReachesEveryValue) {
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) {
    ++counts.at(random.below(7));
  }
  for (const int count : counts) {
    EXPECT_GT(count, 800);
  }
  EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
}  // namespace nsp
