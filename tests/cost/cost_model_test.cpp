#include "nsp/cost/cost_model.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/cost/make_profile.h"
#include "simple_profile.h"

namespace nsp {
namespace {

TEST(CostModel, WorkCountsBlocksUnderTheDiagonal) {
  const CostModel model(simple_model(), simple_profile(), 2);
  // 256 tokens: n = 2, 3 blocks; 4 heads at degree 1, 2 at degree 2.
  EXPECT_EQ(model.sequence(256, 1).compute, (Passes{12000, 24000}));
  EXPECT_EQ(model.sequence(256, 2).compute, (Passes{6000, 12000}));
  EXPECT_EQ(model.sequence(129, 1).compute, model.sequence(256, 1).compute);
  EXPECT_EQ(model.sequence(128, 1).compute, (Passes{4000, 8000}));
}

TEST(CostModel, BytesAreThoseThatLeaveTheRank) {
  const CostModel model(simple_model(), simple_profile(), 4);  // 1 GB/s: a byte a nanosecond
  // Degree 2: a rank holds 50 of 100 tokens and sends half of its heads: q 4, k and v 2 each -> 8
  // values.
  EXPECT_EQ(model.sequence(100, 2).prologue.forward, 50 * 8 / 2);
  EXPECT_EQ(model.sequence(100, 2).epilogue.forward, 50 * 4 / 2);
  // Degree 4: 25 tokens, three quarters leave; each of 2 KV heads goes to two ranks: 4 copies.
  EXPECT_EQ(model.sequence(100, 4).prologue.forward, 25 * (4 + 2 * 4) * 3 / 4);
  EXPECT_EQ(model.sequence(100, 1).traffic(), Passes{});
}

TEST(CostModel, DegreesBeyondAHostCrossTheSlowLink) {
  const CostModel model(simple_model(), simple_profile(), 2);
  EXPECT_EQ(model.sequence(100, 2).prologue.forward, 200);   // 200 bytes at 1 GB/s
  EXPECT_EQ(model.sequence(100, 2).prologue.backward, 100);  // the output's gradient
  EXPECT_EQ(model.sequence(100, 2).epilogue, (Passes{100, 200}));
  EXPECT_EQ(model.sequence(100, 4).prologue.forward, 2250);  // 225 bytes at 0.1 GB/s
  EXPECT_EQ(model.way_fixed(head_split(1)).sum(), (Passes{0, 0}));
  EXPECT_EQ(model.way_fixed(head_split(2)).sum(), (Passes{10, 10}));
  EXPECT_EQ(model.way_fixed(head_split(4)).sum(), (Passes{100, 100}));
}

// Hosts of 6: the nodes 4 to 7 of degree 4 cross, whatever their size.
TEST(CostModel, DegreesThatDoNotDivideAHostCrossTheSlowLink) {
  const CostModel odd(simple_model(), simple_profile(), 6);
  const CostModel pairs(simple_model(), simple_profile(), 2);
  for (const std::int32_t degree : {2, 4}) {
    EXPECT_EQ(odd.sequence(400, degree).prologue.forward,
              pairs.sequence(400, degree).prologue.forward);
  }
}

TEST(CostModel, HeadsLimitTheDegree) {
  const CostModel model(simple_model(), simple_profile(), 2);
  EXPECT_EQ(model.allowed_degrees(8), (std::vector<std::int32_t>{1, 2, 4}));
  EXPECT_EQ(allowed_degrees(12, 8), (std::vector<std::int32_t>{1, 2, 4}));
  EXPECT_EQ(allowed_degrees(3, 8), (std::vector<std::int32_t>{1}));
  EXPECT_THROW(model.sequence(100, 8), BadInput);
}

// measured/: one 32K sequence, 32 heads over 4 KV heads: 562 TFLOP/s forward, about 500 backward.
TEST(CostModel, FrozenProfileReproducesMeasuredRates) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  const auto launch = [&](std::int32_t degree) {
    NodeSums alone;
    alone.add(model.sequence(32768, degree));
    return model.phases(head_split(degree), alone).compute;
  };
  const double flop = 2.0 * 32768 * 32768 * 32 * 128;
  const Passes node = launch(1);
  EXPECT_NEAR(flop / static_cast<double>(node.forward), 562e3, 15e3);  // FLOP a nanosecond
  EXPECT_NEAR(2.5 * flop / static_cast<double>(node.backward), 500e3, 15e3);
  // One head a rank: 402 TFLOP/s forward, the critical path weighs (the law is within 12 % of each
  // row).
  const Passes one = launch(32);
  EXPECT_NEAR(flop / 32 / static_cast<double>(one.forward), 402e3, 0.12 * 402e3);
}

TEST(CostModel, ForwardSlowsBeyond64K) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  const auto rate = [&](std::int64_t tokens) {
    return static_cast<double>(tokens) * static_cast<double>(tokens) /
           static_cast<double>(model.sequence(tokens, 1).compute.forward);
  };
  EXPECT_NEAR(rate(262144) / rate(65536), 14.9 / 16.9, 0.01);
}

TEST(CostModel, StepAddsLayersHeadAndExposedGathers) {
  Profile profile = simple_profile();
  profile.fsdp = {.gather_bytes = 1000, .scatter_bytes = 600, .bytes_per_second = 1e9};
  profile.lm_head_token_seconds = 3e-9;
  profile.parameters = 100;
  profile.optimizer_parameter_seconds = 1e-9;
  const CostModel model(simple_model(), profile, 2);
  // World 2: gather 500, scatter 300. Forward 700 hides it; backward 600 does not hide 800.
  EXPECT_EQ(model.round_step({700, 600}, 10, 2), 10 * (700 + 800) + 30);
  EXPECT_EQ(model.round_step({700, 600}, 10, 1), 10 * (700 + 600) + 30);
  EXPECT_EQ(model.optimizer(2), 50);
}

TEST(CostModel, AbsurdLengthsSaturate) {
  const ModelShape shape = find_model("tiny");
  const CostModel model(shape, find_profile(shape, "cpu-gloo"), 8);
  EXPECT_GT(model.sequence(std::int64_t{1} << 40, 1).compute.forward, 0);
}

}  // namespace
}  // namespace nsp
