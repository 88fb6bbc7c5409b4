#include "nsp/sim/layer_time.h"

#include <gtest/gtest.h>

#include "nsp/cost/evaluate.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

// World 2, one host (see evaluate_test): sequence 0 over both ranks, sequence 1 on rank 0.
//   degree 2: prologue 517 / 261, compute 6000 / 12000, epilogue 261 / 517 (forward / backward)
//   leaf 0:   4000 / 8000;  dense: 256 / 512 on rank 0, 128 / 256 on rank 1
Round two_levels() {
  return make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                   {{place(0, 256, {0, 2}), place(1, 128, {0, 1})}})
      .rounds[0];
}

// Leaf work first: rank 0 computes 0-4000-10000 (backward 0-8000-20000); the prologue hides, the
// epilogue starts when rank 0 is there: 10261 (20517), then its dense part.
TEST(LayerTime, LeafFirstHidesThePrologue) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Round round = two_levels();
  EXPECT_EQ(simulate_layer(round_times(model, round, 2), default_order(round)),
            (LayerTime{10261 + 256, 20517 + 512}));
}

// Root first: prologue 517 exposed, both compute to 6517, the epilogue hides behind rank 0's leaf:
// 10517. Backward: 261, 12261, leaf to 20261; the epilogue is long done.
TEST(LayerTime, RootFirstHidesTheEpilogue) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const std::vector<Issue> order = {
      {Phase::kPrologue, 2}, {Phase::kCompute, 2}, {Phase::kEpilogue, 2}, {Phase::kCompute, 1}};
  EXPECT_EQ(simulate_layer(round_times(model, two_levels(), 2), order),
            (LayerTime{10517 + 256, 20261 + 512}));
}

// Rank 0 has two leaves of 4000 (8000), one of which runs first: 0-4000, degree 2 to 10000, the
// other to 14000 (8000, 20000, 28000). Both exchanges hide.
TEST(LayerTime, APartOfTheLeavesFirstHidesBothExchanges) {
  const CostModel model(simple_model(), simple_profile(), 2);
  Round round = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                          {{place(0, 256, {0, 2}), place(1, 128, {0, 1}), place(2, 128, {0, 1})}})
                    .rounds[0];
  round.schedule.leaf_first = {1, 0};
  round.schedule.order = {
      {Phase::kPrologue, 2}, {Phase::kCompute, 2}, {Phase::kEpilogue, 2}, {Phase::kCompute, 1}};
  const RoundTimes times = round_times(model, round, 2);
  EXPECT_EQ(simulate_layer(times, round.schedule.order), (LayerTime{14000 + 384, 28000 + 768}));
  EXPECT_EQ(simulate_serial_layer(times),
            (LayerTime{14000 + 517 + 261 + 384, 28000 + 261 + 517 + 768}));
}

// The level of 512 and 256 tokens over both ranks in two waves (costs: best_order_test). Serial: a
// second exchange of 5 each way more than the load.
TEST(LayerTime, ALevelInTwoWavesHidesTheExchangesBetweenThem) {
  const CostModel model(simple_model(), simple_profile(), 2);
  Round round = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                          {{place(0, 512, {0, 2}), place(1, 256, {0, 2})}})
                    .rounds[0];
  EXPECT_EQ(simulate_serial_layer(round_times(model, round, 2)),
            (LayerTime{28314 + 384, 54314 + 768}));
  round.schedule.cuts = {{.degree = 2, .tokens = 256}};
  const RoundTimes times = round_times(model, round, 2);
  ASSERT_EQ(times.levels.size(), 3U);
  EXPECT_EQ(simulate_layer(times, default_order(round)), (LayerTime{27418, 54058}));
  EXPECT_EQ(simulate_serial_layer(times), (LayerTime{28324 + 384, 54324 + 768}));
}

TEST(LayerTime, SerialIsTheLoad) {
  const CostModel model(simple_model(), simple_profile(), 2);
  EXPECT_EQ(simulate_serial_layer(round_times(model, two_levels(), 2)), (LayerTime{11034, 21290}));
}

// Without a barrier rank 0's leaf of layer 2 starts at 10517, the prologue 10517-11034 hides behind
// it, and so on: a layer takes 4000 + 6000 + 261 + 256 again.
TEST(LayerTime, LayersInARowHaveNoBarrier) {
  const CostModel model(simple_model(), simple_profile(), 2);
  const Round round = two_levels();
  const RoundTimes times = round_times(model, round, 2);
  EXPECT_EQ(simulate_layers(times, default_order(round), 3).forward, 3 * 10517);
  // Rank 1 computes dense for long, rank 0 attention: from a common start each layer would take
  // rank 0's attention and then rank 1's dense part.
  RoundTimes uneven = times;
  uneven.dense = {{0, 0}, {9000, 0}};
  EXPECT_EQ(simulate_layer(uneven, default_order(round)).forward, 10261 + 9000);
  // Layer 2: rank 0's leaf 10261-14261; prologue 19261-19778, both compute to 25778, epilogue
  // 26039.
  EXPECT_EQ(simulate_layers(uneven, default_order(round), 2).forward, 26039 + 9000);
}

// World 4: ranks 0 and 1 have a node of their own first, so ranks 2 and 3 wait for them in the
// prologue of degree 4.
TEST(LayerTime, AnExchangeWaitsForItsLastRank) {
  const CostModel model(simple_model(), simple_profile(), 4);
  const Round round = make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4},
                                {{place(0, 256, {0, 2}), place(1, 512, {0, 4})}})
                          .rounds[0];
  const RoundTimes times = round_times(model, round, 4);
  const PhaseCost four = times.levels[0].nodes[0].cost;
  const PhaseCost two = times.levels[1].nodes[0].cost;
  const std::vector<Issue> leaf_to_root = {{Phase::kPrologue, 2},
                                           {Phase::kCompute, 2},
                                           {Phase::kEpilogue, 2},
                                           {Phase::kPrologue, 4},
                                           {Phase::kCompute, 4},
                                           {Phase::kEpilogue, 4},
                                           {Phase::kCompute, 1}};
  const std::int64_t end = two.sum().forward + four.sum().forward;
  EXPECT_EQ(simulate_layer(times, leaf_to_root).forward, end + times.dense[0].forward);
}

// Values without bytes, collectives without latency: communication takes no time at all.
CostModel without_communication() {
  ModelShape shape = find_model("qwen3-30b-a3b");
  Profile profile = find_profile(shape, "h200");
  shape.bytes_per_value = 0;
  profile.inside.latency_seconds = 0;
  profile.between.latency_seconds = 0;
  return CostModel(shape, profile, 8);
}

class LayersOfRandomPlans : public testing::TestWithParam<std::uint64_t> {};

// Levels root to leaf: nobody waits, since ranks of a node have done the same before.
TEST_P(LayersOfRandomPlans, WithoutCommunicationRootFirstIsTheLoad) {
  const Plan plan = random_plan(GetParam());
  const CostModel model = without_communication();
  for (const Round& round : plan.rounds) {
    const RoundLoad load = evaluate(model, round, plan.world);
    const RoundTimes times = round_times(model, round, plan.world);
    EXPECT_EQ(simulate_layer(times, serial_order(times.levels)),
              (LayerTime{load.largest.forward, load.largest.backward}));
  }
}

TEST_P(LayersOfRandomPlans, SerialIsTheLoadAndOverlapIsNeverAboveItRootFirst) {
  const Plan plan = random_plan(GetParam());
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const CostModel model(shape, find_profile(shape, "h200"), 8);
  for (const Round& round : plan.rounds) {
    const RoundLoad load = evaluate(model, round, plan.world);
    const RoundTimes times = round_times(model, round, plan.world);
    const LayerTime serial = simulate_serial_layer(times);
    EXPECT_EQ(serial, (LayerTime{load.largest.forward, load.largest.backward}));
    const LayerTime overlapped = simulate_layer(times, serial_order(times.levels));
    EXPECT_LE(overlapped.forward, serial.forward);
    EXPECT_LE(overlapped.backward, serial.backward);
  }
}

// Expert groups of two and every backend: the walk follows the cost model there, too.
TEST_P(LayersOfRandomPlans, SerialIsTheLoadWithExpertGroupsAndOtherBackends) {
  Plan plan = random_plan(GetParam());
  const ModelShape shape = find_model("qwen3-30b-a3b");
  Profile profile = find_profile(shape, "h200");
  profile.dense_forward.expert_token_seconds = profile.dense_forward.token_seconds / 2;
  profile.dense_backward.expert_token_seconds = profile.dense_backward.token_seconds / 4;
  const CostModel model(shape, profile, 8, plan.world % 2 == 0 ? 2 : 1);
  for (Round& round : plan.rounds) {
    for (Placement& placement : round.placements) {
      if (placement.node.degree > 1 && placement.sequence % 3 > 0) {
        placement.backend = placement.sequence % 3 == 1 ? Backend::kGather : Backend::kRing;
        placement.ulysses_degree = 1;
      }
    }
    const RoundLoad load = evaluate(model, round, plan.world);
    EXPECT_EQ(simulate_serial_layer(round_times(model, round, plan.world)),
              (LayerTime{load.largest.forward, load.largest.backward}));
  }
}

INSTANTIATE_TEST_SUITE_P(LayerTime, LayersOfRandomPlans, testing::Range<std::uint64_t>(0, 60));

}  // namespace
}  // namespace nsp
