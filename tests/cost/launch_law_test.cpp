#include "nsp/cost/launch_law.h"

#include <gtest/gtest.h>

#include "nsp/base/random.h"
#include "nsp/cost/exact.h"

namespace nsp {
namespace {

Wide cube(std::int64_t value) {
  return wide(value) * wide(value) * wide(value);
}

TEST(LaunchLaw, KnownCubes) {
  EXPECT_EQ(launch_law(0, 0), 0);
  EXPECT_EQ(launch_law(7, 0), 7);
  EXPECT_EQ(launch_law(0, 7), 7);
  EXPECT_EQ(launch_law(1, 1), 1);           // 2^(1/3) = 1.26
  EXPECT_EQ(launch_law(1000, 1000), 1259);  // 1259.92
  EXPECT_EQ(launch_law(12, 10), 13);        // 1728 + 1000 = 2728, 13^3 = 2197, 14^3 = 2744
}

TEST(LaunchLaw, IsTheFloorOfTheCubeRoot) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = 1 + random.below(40);
    const auto work = static_cast<std::int64_t>(random.below(std::uint64_t{1} << bits));
    const auto path = static_cast<std::int64_t>(random.below(std::uint64_t{1} << bits));
    const std::int64_t root = launch_law(work, path);
    ASSERT_LE(cube(root), cube(work) + cube(path)) << work << " " << path;
    ASSERT_GT(cube(root + 1), cube(work) + cube(path)) << work << " " << path;
  }
}

TEST(LaunchLaw, LargeOperandsKeepTheirSize) {
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_GE(launch_law(large, large), large / 100 * 125);
  EXPECT_LE(launch_law(large, large), large / 100 * 127);
  EXPECT_EQ(launch_law(large, 5), large);
}

TEST(CeilRatio, RoundsUpAndSaturates) {
  EXPECT_EQ(ceil_ratio(0, 7), 0);
  EXPECT_EQ(ceil_ratio(14, 7), 2);
  EXPECT_EQ(ceil_ratio(15, 7), 3);
  EXPECT_EQ(ceil_ratio(wide(std::int64_t{1} << 60) * 1000, 1000), kMostNanoseconds);
}

}  // namespace
}  // namespace nsp
