#include "nsp/sim/simulate.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/cost/evaluate.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "nsp/sim/layer_time.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_cuts.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

ModelShape with_layers(ModelShape shape, std::int64_t layers) {
  shape.layers = layers;
  return shape;
}

// Rank 0 has one block: attention 4000 / 8000, dense 128 / 256 a layer; rank 1 has nothing. Two
// layers; a gather takes 1000, a scatter 1500.
//   0      gather of layer 0
//   1000   both begin layer 0; gather of layer 1 to 2000; rank 1 is at the head at 2000
//   5128   rank 0 begins layer 1, 9256 the head, and only now the gather for backward can start
//   10256  backward of layer 1; the gather for layer 0 ends at 11256, rank 1 is done then
//   18512  rank 0 begins backward of layer 0; gradients of layer 1 travel beside it
//   26768  gradients of layer 0, to 28268; optimizer
TEST(Simulate, AStepSolvedByHand) {
  Profile profile = simple_profile();
  profile.fsdp = {.gather_bytes = 2000, .scatter_bytes = 3000, .bytes_per_second = 1e9};
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {{place(0, 128, {0, 1})}});
  const Timeline timeline = simulate(plan, with_layers(simple_model(), 2), profile);
  EXPECT_EQ(timeline.step, 28268);
  EXPECT_EQ(timeline.ranks[0],
            (Breakdown{.attention_forward = 8000,
                       .attention_backward = 16000,
                       .dense = 768,
                       .exposed_fsdp = 3500,
                       .waiting = 0}));
  // Gathers at 0, 1000, 9256, 10256; scatters at 18512 and 26768.
  EXPECT_EQ(timeline.ranks[1], (Breakdown{.exposed_fsdp = 4000 + 3000, .waiting = 28268 - 7000}));
  EXPECT_EQ(timeline.slowest, 0);
}

// Without FSDP ranks meet in exchanges alone. Sequence 0 over both ranks, one layer, leaf first:
// forward as in layer_time_test, 10261 on both, dense to 10517 and 10389. Backward: rank 0 dense to
// 11029, rank 1 to 10645; prologue 11029-11290; rank 0: leaf to 19029, degree 2 to 31029; epilogue
// to 31546. Rank 1 computes 11290-23290.
TEST(Simulate, ExposedCommunicationAndWaiting) {
  const Plan plan = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                              {{place(0, 256, {0, 2}), place(1, 128, {0, 1})}});
  const Timeline timeline =
      simulate(plan, with_layers(simple_model(), 1), simple_profile(), {.fsdp = false});
  EXPECT_EQ(timeline.step, 31546);
  EXPECT_EQ(timeline.ranks[0],
            (Breakdown{.attention_forward = 10000,
                       .attention_backward = 20000,
                       .dense = 768,
                       .exposed_exchange = 261 + 517}));
  // Prologue 517; epilogue waits 6517-10000, runs to 10261; backward prologue waits 10645-11029,
  // runs to 11290; epilogue waits 23290-31029, runs to 31546.
  EXPECT_EQ(timeline.ranks[1],
            (Breakdown{.attention_forward = 6000,
                       .attention_backward = 12000,
                       .dense = 384,
                       .exposed_exchange = 517 + 261 + 261 + 517,
                       .waiting = 3483 + 384 + 7739}));
}

TEST(Simulate, AnEmptyPlanTakesNoTime) {
  const Plan plan = make_plan({.world = 4, .sp_max = 2, .ranks_per_host = 4}, {});
  EXPECT_EQ(simulate(plan, simple_model(), simple_profile()).step, 0);
}

TEST(Simulate, ExpertGroupsMeetInEveryLayer) {
  const Plan plan =
      make_plan({.world = 2, .sp_max = 1, .ranks_per_host = 2}, {{place(0, 128, {0, 1})}});
  Profile profile = simple_profile();
  profile.dense_forward.expert_token_seconds = profile.dense_forward.token_seconds;
  profile.dense_backward.expert_token_seconds = profile.dense_backward.token_seconds;
  ModelShape shape = with_layers(simple_model(), 1);
  shape.experts = 2;
  const Timeline timeline = simulate(plan, shape, profile, {.fsdp = false, .ep = 2});
  // Attention 4000, half of the dense part on each rank: 64, 128, attention 8000.
  EXPECT_EQ(timeline.step, 4000 + 64 + 128 + 8000);
  EXPECT_EQ(timeline.ranks[1], (Breakdown{.dense = 192, .waiting = 12000}));
  EXPECT_THROW(simulate(plan, shape, profile, {.ep = 3}), BadInput);
  EXPECT_THROW(simulate(plan, simple_model(), profile, {.ep = 2}), BadInput);  // no experts
}

Plan with_marks(Plan plan, Mark mark) {
  for (Round& round : plan.rounds) {
    for (Placement& placement : round.placements) {
      placement.mark = mark;
    }
  }
  return plan;
}

class StepsOfRandomPlans : public testing::TestWithParam<std::uint64_t> {
 protected:
  StepsOfRandomPlans() : plan_(random_plan(GetParam())), shape_(find_model("qwen3-30b-a3b")) {
    profile_ = find_profile(shape_, "h200");
    shape_.layers = 20;
  }

  Timeline play(const SimulateOptions& options) const {
    return simulate(plan_, shape_, profile_, options);
  }

  // When the last rank is done with the forward of layer 0, from the start of this round.
  std::int64_t forward_end(const Round& round, bool overlap) const {
    Plan plan = plan_;
    plan.rounds = {round};
    std::int64_t end = 0;
    for (const Span& span :
         simulate(plan, shape_, profile_, {.fsdp = false, .overlap = overlap, .spans = true})
             .spans) {
      if (span.layer == 0 && !span.backward) {
        end = std::max(end, span.end);
      }
    }
    return end;
  }

  Plan plan_;
  ModelShape shape_;
  Profile profile_;
};

TEST_P(StepsOfRandomPlans, PartsOfEveryRankAddUpToTheStep) {
  for (const Checkpointing checkpointing : {Checkpointing::kNone, Checkpointing::kFull}) {
    for (const bool overlap : {true, false}) {
      const Timeline timeline = play({.overlap = overlap, .checkpointing = checkpointing});
      for (const Breakdown& rank : timeline.ranks) {
        EXPECT_EQ(rank.sum(), timeline.step);
      }
    }
  }
}

TEST_P(StepsOfRandomPlans, LeapingOverEqualLayersChangesNothing) {
  for (const bool fsdp : {true, false}) {
    SimulateOptions options{.fsdp = fsdp, .checkpointing = Checkpointing::kFull};
    const Timeline leapt = play(options);
    options.every_layer = true;
    EXPECT_EQ(play(options), leapt);
  }
}

TEST_P(StepsOfRandomPlans, SpansAreTheSameTimeline) {
  shape_.layers = 3;
  const Timeline without = play({});
  Timeline timeline = play({.spans = true});
  EXPECT_EQ(timeline, play({.spans = true}));
  std::vector<std::int64_t> computed(timeline.ranks.size(), 0);
  std::int64_t last = 0;
  for (const Span& span : timeline.spans) {
    EXPECT_LT(span.begin, span.end);
    last = std::max(last, span.end);
    if (span.queue == Queue::kCompute) {
      computed[static_cast<std::size_t>(span.rank)] += span.end - span.begin;
    }
  }
  EXPECT_EQ(last, timeline.step);
  for (std::size_t rank = 0; rank < computed.size(); ++rank) {
    const Breakdown& parts = timeline.ranks[rank];
    EXPECT_EQ(computed[rank],
              timeline.step - parts.waiting - parts.exposed_exchange - parts.exposed_fsdp);
  }
  timeline.spans.clear();
  EXPECT_EQ(timeline, without);
}

// With one layer and no FSDP the last forward span ends when the single layer's walk says so.
TEST_P(StepsOfRandomPlans, OneLayerAgreesWithTheWalk) {
  shape_.layers = 1;
  const CostModel model(shape_, profile_, plan_.ranks_per_host);
  for (const Round& round : plan_.rounds) {
    const RoundTimes times = round_times(model, round, plan_.world);
    EXPECT_EQ(forward_end(round, true), simulate_layer(times, round.schedule.order).forward);
    EXPECT_EQ(forward_end(round, false), simulate_serial_layer(times).forward);
  }
}

TEST_P(StepsOfRandomPlans, LeavesThatRunFirstAgreeWithTheWalk) {
  shape_.layers = 1;
  const CostModel model(shape_, profile_, plan_.ranks_per_host);
  for (Round& round : plan_.rounds) {
    std::vector<std::int32_t> leaves(static_cast<std::size_t>(plan_.world), 0);
    for (const Placement& placement : round.placements) {
      leaves[static_cast<std::size_t>(placement.node.first_rank)] += placement.node.degree == 1;
    }
    for (std::size_t rank = 0; rank < leaves.size(); ++rank) {
      round.schedule.leaf_first[rank] = (leaves[rank] + 1) / 2;
    }
    const RoundTimes times = round_times(model, round, plan_.world);
    EXPECT_EQ(forward_end(round, true), simulate_layer(times, round.schedule.order).forward);
    EXPECT_EQ(forward_end(round, false), simulate_serial_layer(times).forward);
  }
}

TEST_P(StepsOfRandomPlans, LevelsInTwoWavesAgreeWithTheWalk) {
  shape_.layers = 1;
  const CostModel model(shape_, profile_, plan_.ranks_per_host);
  for (const Round& round : with_random_cuts(plan_, GetParam()).rounds) {
    const RoundTimes times = round_times(model, round, plan_.world);
    EXPECT_EQ(forward_end(round, true), simulate_layer(times, round.schedule.order).forward);
    EXPECT_EQ(forward_end(round, false), simulate_serial_layer(times).forward);
  }
}

// A rank's own work without any wait is a lower bound.
TEST_P(StepsOfRandomPlans, SerialIsNeverBelowTheSlowestRanksWork) {
  const CostModel model(shape_, profile_, plan_.ranks_per_host);
  const Timeline timeline = play({.fsdp = false, .overlap = false});
  std::vector<std::int64_t> own(static_cast<std::size_t>(plan_.world), 0);
  for (const RoundLoad& round : evaluate(model, plan_).rounds) {
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
      own[rank] += shape_.layers * round.ranks[rank].sum();
    }
  }
  EXPECT_GE(timeline.step, std::ranges::max(own));
}

TEST_P(StepsOfRandomPlans, MarksReduceRecomputationExactly) {
  const SimulateOptions full{.checkpointing = Checkpointing::kFull};
  const SimulateOptions marks{.checkpointing = Checkpointing::kMarks};
  const Timeline all = play(full);
  EXPECT_EQ(play(marks).step, all.step);  // every placement is marked recompute
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    EXPECT_EQ(all.ranks[rank].recompute, all.ranks[rank].attention_forward);
  }
  for (const Mark mark : {Mark::kSave, Mark::kSaveQkv}) {
    const Timeline saved = simulate(with_marks(plan_, mark), shape_, profile_, marks);
    for (const Breakdown& rank : saved.ranks) {
      EXPECT_EQ(rank.recompute, 0);
    }
  }
}

// Sequence 0 over both ranks, one layer; prologue 512 / 256, compute 6000 / 12000, epilogue 256 /
// 512, each exchange 5 more; dense 128 / 256. All: forward 6778 + 128 and backward 128 (dense
// again) + 256
// + 261 + 12000 + 517. Recompute: 6778 before that. Save: no attention again, but the backward
// prologue takes q, k, v and the output along, 512 + 256, in the same exchange. Save_qkv: the
// output, 256.
TEST(Simulate, MarksDecideWhatBackwardFetches) {
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {{place(0, 256, {0, 2})}});
  const auto step = [&](Mark mark) {
    return simulate(with_marks(plan, mark),
                    with_layers(simple_model(), 1),
                    simple_profile(),
                    {.fsdp = false, .checkpointing = Checkpointing::kMarks})
        .step;
  };
  const std::int64_t least = 6778 + 128 + 128 + 256 + 261 + 12000 + 517;
  EXPECT_EQ(step(Mark::kRecompute), least + 6778);
  EXPECT_EQ(step(Mark::kSave), least + 512 + 256);
  EXPECT_EQ(step(Mark::kSaveQkv), least + 256);
}

// One round with something to run: the first such random plan from this seed on.
Plan busy_round(std::uint64_t seed) {
  Plan plan = random_plan(seed);
  while (plan.num_sequences == 0) {
    seed += 1000;
    plan = random_plan(seed);
  }
  std::erase_if(plan.rounds, [](const Round& round) { return round.placements.empty(); });
  plan.rounds.resize(1);
  return plan;
}

// One placement saved: its node's share of the launch is what goes.
TEST_P(StepsOfRandomPlans, APartlySavedNodeRecomputesTheRest) {
  Plan plan = busy_round(GetParam());
  Plan rest = plan;
  plan.rounds[0].placements[0].mark = Mark::kSaveQkv;
  rest.rounds[0].placements.erase(rest.rounds[0].placements.begin());
  set_default_schedule(rest.rounds[0], rest.world);
  const Timeline saved = simulate(plan, shape_, profile_, {.checkpointing = Checkpointing::kMarks});
  const Timeline without = simulate(rest, shape_, profile_);
  for (std::size_t rank = 0; rank < saved.ranks.size(); ++rank) {
    EXPECT_EQ(saved.ranks[rank].recompute, without.ranks[rank].attention_forward);
  }
}

INSTANTIATE_TEST_SUITE_P(Simulate, StepsOfRandomPlans, testing::Range<std::uint64_t>(0, 25));

}  // namespace
}  // namespace nsp
