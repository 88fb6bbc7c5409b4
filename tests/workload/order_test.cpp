#include "nsp/workload/order.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

TEST(Order, EverySampleIsVisitedOnceAnEpoch) {
  for (const std::int64_t count : {0, 1, 2, 3, 1000}) {
    std::vector<std::int64_t> order = permutation(count, 5, 3);
    std::ranges::sort(order);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    }
  }
}

TEST(Order, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(permutation(50, 1, 2), permutation(50, 1, 2));
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      orders.insert(permutation(50, seed, epoch));
    }
  }
  EXPECT_EQ(orders.size(), 100U);
}

// Each of the 6 orders of 3 samples is equally likely: 6000 seeds give about 1000 of each.
TEST(Order, IsUniform) {
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    ++counts[permutation(3, seed, 0)];
  }
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(Order, RefusesANegativeCount) {
  EXPECT_THROW(permutation(-1, 0, 0), BadInput);
}

}  // namespace
}  // namespace nsp
