#include "nsp/exec/view.h"

#include <array>

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace nsp {
namespace {

using at::Tensor;

// (T, heads, D), values counting up.
Tensor counting(std::int64_t tokens, std::int64_t heads, std::int64_t d, at::ScalarType type) {
  return at::arange(tokens * heads * d).to(type).view({tokens, heads, d});
}

TEST(View, IsTheMemoryThatTorchsOwnViewIs) {
  const Tensor x = counting(5, 4, 3, at::kFloat);
  EXPECT_TRUE(part(x, 1, 1, 2).equal(x.narrow(1, 1, 2)));
  EXPECT_TRUE(part(part(x, 0, 2, 3), 0, 1, 1).equal(x.narrow(0, 3, 1)));
  EXPECT_TRUE(
      strided(part(x, 0, 1, 4), {2, 3}, {1, 12}, 1).equal(x.as_strided({2, 3}, {1, 12}, 13)));
  part(x, 0, 4, 1).fill_(7);
  EXPECT_TRUE(x.select(0, 4).eq(7).all().item<bool>());
  EXPECT_EQ(part(x, 0, 5, 0).size(0), 0);
}

TEST(Widen, TakesTheWidestWordsThatFitAll) {
  std::array<Tensor, 2> x = {counting(3, 4, 8, at::kBFloat16), counting(3, 2, 8, at::kBFloat16)};
  widen(x);
  EXPECT_EQ(x[0].scalar_type(), at::kComplexDouble);  // 16 bytes
  EXPECT_EQ(x[0].sizes(), (at::IntArrayRef{3, 4}));
  EXPECT_EQ(x[1].sizes(), (at::IntArrayRef{3, 2}));
  std::array<Tensor, 1> half = {counting(3, 4, 4, at::kBFloat16)};
  widen(half);
  EXPECT_EQ(half[0].scalar_type(), at::kLong);  // 8 bytes
  EXPECT_EQ(half[0].sizes(), (at::IntArrayRef{3, 4}));
  std::array<Tensor, 1> odd = {counting(3, 4, 3, at::kBFloat16)};
  widen(odd);
  EXPECT_EQ(odd[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(odd[0].sizes(), (at::IntArrayRef{3, 12}));
}

// Heads of 8 bfloat16 values that begin 8 bytes into 16.
TEST(Widen, KeepsWordsInsideTheirAlignment) {
  std::array<Tensor, 1> x = {strided(counting(1, 1, 64, at::kBFloat16), {2, 2, 8}, {16, 8, 1}, 4)};
  widen(x);
  EXPECT_EQ(x[0].scalar_type(), at::kLong);
}

TEST(Widen, LeavesHeadsThatLieApart) {
  std::array<Tensor, 2> x = {counting(4, 3, 8, at::kDouble).transpose(0, 1),
                             counting(3, 4, 8, at::kDouble)};
  widen(x);
  EXPECT_EQ(x[0].sizes(), (at::IntArrayRef{3, 4, 8}));
  EXPECT_EQ(x[1].sizes(), (at::IntArrayRef{3, 4, 8}));
}

TEST(Widen, CopiesEveryValue) {
  const Tensor from = counting(6, 4, 8, at::kBFloat16), to = at::zeros({6, 4, 8}, at::kBFloat16);
  std::array<Tensor, 2> wide = {from.narrow(1, 1, 2), to.narrow(1, 2, 2)};
  widen(wide);
  wide[1].copy_(wide[0]);
  EXPECT_TRUE(to.narrow(1, 2, 2).equal(from.narrow(1, 1, 2)));
  EXPECT_TRUE(to.narrow(1, 0, 2).eq(0).all().item<bool>());
}

}  // namespace
}  // namespace nsp
