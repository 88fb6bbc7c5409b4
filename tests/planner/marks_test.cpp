#include "nsp/planner/marks.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/error.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/way.h"
#include "nsp/planner/planner.h"
#include "tests/cost/simple_profile.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

constexpr MarkOrder kOrders[] = {MarkOrder::kTree, MarkOrder::kSecondsPerByte};

// 4 heads of 1 byte and a float each: 20 bytes a token.
CostModel simple_costs() {
  return CostModel(simple_model(), simple_profile(), 2);
}
const std::int64_t kSimple = saved_token_bytes(simple_model());

std::vector<std::int64_t> saved_sequences(const Plan& plan) {
  std::vector<std::int64_t> saved;
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      if (placement.mark == Mark::kSave) {
        saved.push_back(placement.sequence);
      }
    }
  }
  return saved;
}

Plan marked(Plan plan, const CostModel& model, const MarkRule& rule) {
  mark_recompute(plan, model, rule);
  return plan;
}

double seconds_saved(const Plan& plan, const CostModel& model) {
  double sum = 0;
  for (const LevelSaved& level : saved_by_level(plan, model, 1)) {
    sum += level.seconds_saved;
  }
  return sum;
}

// 384 tokens a rank. Microseconds of forward attention, 1 a head and block of 128 x 128:
//   0: 256 tokens on both ranks, 3 blocks x 2 heads =  6 on each, 12 / 256 a token
//   1: 128 tokens on rank 0,     1 block  x 4 heads =  4,          4 / 128
//   2: 384 tokens on rank 1,     6 blocks x 4 heads = 24,         24 / 384
// Tree: 0 leaves room for 256 on each rank: 1 fits, 2 does not. Seconds a byte: 2 first, it fills
// rank 1; then 0 does not fit there, 1 does.
TEST(Marks, TheTwoOrdersOfAHandSolvedPlan) {
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2},
                {{place(0, 256, {0, 2}), place(1, 128, {0, 1}), place(2, 384, {1, 1})}});
  const MarkRule tree{.byte_budget = 384 * 20, .token_bytes = kSimple, .order = MarkOrder::kTree};
  const Plan by_tree = marked(plan, simple_costs(), tree);
  EXPECT_EQ(saved_sequences(by_tree), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(saved_bytes(by_tree, kSimple), (std::vector<std::int64_t>{256 * 20, 128 * 20}));
  const Plan by_seconds =
      marked(plan, simple_costs(), {.byte_budget = 384 * 20, .token_bytes = kSimple});
  EXPECT_EQ(saved_sequences(by_seconds), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(saved_bytes(by_seconds, kSimple), (std::vector<std::int64_t>{128 * 20, 384 * 20}));
  const std::vector<LevelSaved> levels = saved_by_level(by_seconds, simple_costs(), kSimple);
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].degree, 2);
  EXPECT_EQ(levels[0].saved, 0);
  EXPECT_EQ(levels[0].bytes_max, 0);
  EXPECT_DOUBLE_EQ(levels[0].seconds, 6e-6);
  EXPECT_EQ(levels[1].saved, 2);
  EXPECT_EQ(levels[1].bytes_max, 384 * 20);
  EXPECT_DOUBLE_EQ(levels[1].seconds_saved, 14e-6);  // (4 + 24) / 2 ranks
}

// A node of 512 + 256 tokens and room for 256 a rank: the dearer of its sequences is kept.
TEST(Marks, ARingKeepsNothingWhateverTheBudget) {
  const Way ring{.degree = 2, .backend = Backend::kRing, .ulysses_degree = 1};
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2}, {{place(0, 256, 0, ring), place(1, 128, {0, 1})}});
  for (const MarkOrder order : kOrders) {
    const MarkRule rule{.byte_budget = 1 << 30, .token_bytes = kSimple, .order = order};
    EXPECT_EQ(saved_sequences(marked(plan, simple_costs(), rule)), (std::vector<std::int64_t>{1}));
  }
}

TEST(Marks, ANodeThatDoesNotFitWholeIsSplitDearestFirst) {
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2}, {{place(0, 256, {0, 2}), place(1, 512, {0, 2})}});
  for (const MarkOrder order : kOrders) {
    const MarkRule rule{.byte_budget = 256 * 20, .token_bytes = kSimple, .order = order};
    EXPECT_EQ(saved_sequences(marked(plan, simple_costs(), rule)), std::vector<std::int64_t>{1});
  }
}

TEST(Marks, EachRoundHasTheWholeBudget) {
  const Plan plan = make_plan({.world = 1}, {{place(0, 100, {0, 1})}, {place(1, 90, {0, 1})}});
  const Plan all = marked(plan, simple_costs(), {.byte_budget = 2000, .token_bytes = kSimple});
  EXPECT_EQ(saved_sequences(all), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(saved_bytes(all, kSimple), std::vector<std::int64_t>{2000});
}

// Nothing more fits: every placement left out would pass the budget on some rank of its node.
bool is_full(const Round& round, std::int32_t world, std::int64_t most_tokens) {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(world), 0);
  const auto at_most = [&](const Placement& p, std::int64_t most, std::int64_t sign) {
    bool fits = true;
    for (std::int32_t rank = p.node.first_rank; rank < p.node.first_rank + p.node.degree; ++rank) {
      std::int64_t& tokens = kept[static_cast<std::size_t>(rank)];
      fits = fits && tokens + owned_tokens(p, rank) <= most;
      tokens += sign * owned_tokens(p, rank);
    }
    return fits;
  };
  for (const Placement& placement : round.placements) {
    if (placement.mark == Mark::kSave) {
      at_most(placement, 0, 1);
    }
  }
  return std::ranges::none_of(round.placements, [&](const Placement& placement) {
    return placement.mark == Mark::kRecompute && at_most(placement, most_tokens, 0);
  });
}

TEST(Marks, NoRankKeepsMoreThanTheBudgetAndNothingMoreFits) {
  const CostModel model = large_model();
  const std::int64_t token_bytes = saved_token_bytes(kLarge);
  Random random(3);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = random_plan(seed);
    const std::int64_t budget = token_bytes * pick(random, 0, 6000) + pick(random, 0, token_bytes);
    for (const MarkOrder order : kOrders) {
      const MarkRule rule{.byte_budget = budget, .token_bytes = token_bytes, .order = order};
      const Plan found = marked(plan, model, rule);
      EXPECT_LE(std::ranges::max(saved_bytes(found, token_bytes)), budget) << "seed " << seed;
      EXPECT_EQ(found.hash, plan_hash(found));
      EXPECT_EQ(marked(found, model, rule), found);
      for (const Round& round : found.rounds) {
        EXPECT_TRUE(is_full(round, plan.world, budget / token_bytes)) << "seed " << seed;
      }
    }
  }
}

TEST(Marks, NoBudgetSavesNothingAndAnEndlessOneEverything) {
  const CostModel model = large_model();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Plan plan = random_plan(seed);
    for (const MarkOrder order : kOrders) {
      EXPECT_EQ(marked(plan, model, {.byte_budget = 0, .token_bytes = 8, .order = order}), plan);
      const Plan all =
          marked(plan, model, {.byte_budget = INT64_MAX, .token_bytes = 8, .order = order});
      EXPECT_EQ(std::ssize(saved_sequences(all)), plan.num_sequences);
    }
  }
}

// On one rank, filling by falling seconds a byte is monotone: where a larger budget first takes a
// placement that the smaller had no room for, that alone is worth more than all the smaller one
// puts into that room. So it is where all work is on leaves.
TEST(Marks, OnLeavesALargerBudgetNeverSavesFewerSeconds) {
  const CostModel model = large_model();
  Random random(9);
  for (int i = 0; i < 100; ++i) {
    std::vector<Placement> placements;
    for (std::int64_t s = 0; s < 30; ++s) {
      placements.push_back(
          place(s, pick(random, 1, 3000), {static_cast<std::int32_t>(random.below(4)), 1}));
    }
    const Plan plan = make_plan({.world = 4, .sp_max = 4}, {placements});
    double before = 0;
    for (std::int64_t budget = 0; budget < 30000; budget += pick(random, 1, 400)) {
      const double saved =
          seconds_saved(marked(plan, model, {.byte_budget = budget, .token_bytes = 1}), model);
      EXPECT_GE(saved, before * (1 - 1e-12)) << "case " << i << ", budget " << budget;
      before = saved;
    }
  }
}

// On a tree no greedy order can promise that. 512 tokens on rank 0 (10 blocks x 4 = 40 us), 384 on
// all four ranks (96 tokens and 6 us on each), three times 200 on each other rank (12 us each).
// 607 tokens: 512 leaves 95 on rank 0, too few for the group; the others hold three: 40 + 108.
// 608 tokens: the group fits, and leaves the others 512, room for two: 40 + 24 + 72.
TEST(Marks, OnATreeALargerBudgetMaySaveLess) {
  std::vector<Placement> placements = {place(0, 512, {0, 1}), place(1, 384, {0, 4})};
  for (std::int32_t i = 0; i < 9; ++i) {
    placements.push_back(place(2 + i, 200, {1 + i / 3, 1}));
  }
  const Plan plan = make_plan({.world = 4, .sp_max = 4}, {placements});
  const auto saved = [&](std::int64_t tokens) {
    return seconds_saved(marked(plan, simple_costs(), {.byte_budget = tokens, .token_bytes = 1}),
                         simple_costs());
  };
  EXPECT_DOUBLE_EQ(saved(607) * 4, 148e-6);
  EXPECT_DOUBLE_EQ(saved(608) * 4, 136e-6);
}

// The plan of TheTwoOrders. Forward takes 6 + 4 us of attention and 0.256 us of dense work on rank
// 0, 6 + 24 + 0.512 on rank 1. At 50 bytes a microsecond and 4 bytes a token the links hide 128 and
// 381 tokens: 2 does not fit, then 0 does, and takes all of rank 0. At 51 they hide 130 and 389: 2
// fits and leaves 5, too few for 0, then 1 does.
TEST(Marks, WhatDoesNotFitIsOffloadedAsFarAsTheLinkHidesIt) {
  const Plan plan =
      make_plan({.world = 2, .sp_max = 2},
                {{place(0, 256, {0, 2}), place(1, 128, {0, 1}), place(2, 384, {1, 1})}});
  const auto marks = [&](double rate, std::int64_t byte_budget, std::int64_t host_budget) {
    Profile profile = simple_profile();
    profile.host_bytes_per_second = rate;
    const MarkRule rule{.byte_budget = byte_budget,
                        .token_bytes = kSimple,
                        .host_budget = host_budget,
                        .output_bytes = output_token_bytes(simple_model())};
    const Plan found = marked(plan, CostModel(simple_model(), profile, 2), rule);
    std::string letters;
    for (const Placement& placement : found.rounds[0].placements) {
      letters += name(placement.mark)[0];
    }
    return letters;
  };
  constexpr std::int64_t kEndless = INT64_MAX;
  EXPECT_EQ(marks(50e6, 0, kEndless), "orr");
  EXPECT_EQ(marks(51e6, 0, kEndless), "roo");
  EXPECT_EQ(marks(51e6, 0, 128 * 4), "orr");          // a host that takes 128 tokens
  EXPECT_EQ(marks(50e6, 384 * 20, kEndless), "oss");  // 2 and 1 stay on the devices
  EXPECT_EQ(marks(50e6, 384 * 20, 0), "rss");
  EXPECT_EQ(marks(0, 384 * 20, kEndless), "rss");
}

TEST(Marks, AHostsBudgetHoldsBesideTheDevices) {
  PlanRequest request{.lengths = {60000, 50000, 40000, 700, 300, 40, 5}, .world = 4, .sp_max = 4};
  request.byte_budget = 10000 * saved_token_bytes(kLarge);
  const PlanResult saved = plan(request, kLarge, kGpu);
  request.host_budget = 20000 * output_token_bytes(kLarge);
  const PlanResult both = plan(request, kLarge, kGpu);
  const auto offloaded = offloaded_bytes(both.plan, output_token_bytes(kLarge));
  EXPECT_GT(std::ranges::max(offloaded), 0);
  EXPECT_LE(std::ranges::max(offloaded), request.host_budget);
  EXPECT_LE(both.plan.predicted.bytes_max, request.byte_budget);
  EXPECT_GT(seconds_saved(both.plan, large_model()), seconds_saved(saved.plan, large_model()));
}

TEST(Marks, AProfileThatDoesNotKnowTheHostsLinkIsRefused) {
  const PlanRequest request{.lengths = {700, 300}, .world = 4, .sp_max = 4, .host_budget = 1};
  EXPECT_THROW(plan(request, kTiny, kCpu), BadInput);
}

TEST(Marks, APlanKeepsTheBudgetOfItsRequest) {
  PlanRequest request{.lengths = {700, 300, 40, 5, 1, 200}, .world = 4, .sp_max = 4};
  const Plan without = plan(request, kTiny, kCpu).plan;
  EXPECT_EQ(without.predicted.bytes_max, 0);
  request.byte_budget = 200 * saved_token_bytes(kTiny);
  const Plan with = plan(request, kTiny, kCpu).plan;
  EXPECT_GT(with.predicted.bytes_max, 0);
  EXPECT_LE(with.predicted.bytes_max, request.byte_budget);
  EXPECT_NE(with.hash, without.hash);
  EXPECT_EQ(with.hash, plan_hash(with));
  request.byte_budget = -1;
  EXPECT_THROW(plan(request, kTiny, kCpu), BadInput);
}

}  // namespace
}  // namespace nsp
