#include "nsp/exec/sums.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace nsp {
namespace {

at::Tensor filled(double value, at::IntArrayRef sizes) {
  return at::full(sizes, value, at::kDouble);
}

// Weights e^0 and e^(log 3): 1/4 of 2 and 3/4 of 6.
TEST(Sums, MergingWeighsByLogSumExp) {
  const at::Tensor out = filled(2, {1, 1, 1});
  at::Tensor lse = filled(0, {1, 1});
  merge(out, lse, filled(6, {1, 1, 1}), filled(std::log(3.0), {1, 1}));
  EXPECT_NEAR(out.item<double>(), 5, 1e-15);
  EXPECT_NEAR(lse.item<double>(), std::log(4.0), 1e-15);
}

TEST(Sums, AFarLargerPartTakesAll) {
  for (const double other : {-1000.0, 1000.0}) {
    const at::Tensor out = filled(2, {1, 1, 1});
    at::Tensor lse = filled(0, {1, 1});
    merge(out, lse, filled(6, {1, 1, 1}), filled(other, {1, 1}));
    EXPECT_EQ(out.item<double>(), other > 0 ? 6 : 2);
    EXPECT_EQ(lse.item<double>(), std::max(other, 0.0));
  }
}

TEST(Sums, AreInFloat32ButForFloat64) {
  EXPECT_EQ(sum_type(at::kBFloat16), at::kFloat);
  EXPECT_EQ(sum_type(at::kFloat), at::kFloat);
  EXPECT_EQ(sum_type(at::kDouble), at::kDouble);
  const at::Tensor rows = filled(1, {2, 1, 1});
  EXPECT_TRUE(as_sum(rows).is_same(rows));
}

}  // namespace
}  // namespace nsp
