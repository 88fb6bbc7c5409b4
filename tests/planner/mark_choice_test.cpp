#include "nsp/planner/mark_choice.h"

#include <cstdio>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/error.h"
#include "nsp/planner/planner.h"
#include "nsp/sim/simulate.h"
#include "tests/plan/random_plan.h"

namespace nsp {
namespace {

std::int64_t step_of(const Plan& plan) {
  return simulated_step(large_model(), kLarge, plan.rounds, plan.world, Checkpointing::kMarks);
}

Plan without_marks(Plan plan) {
  mark_recompute(plan, large_model(), {.byte_budget = 0, .token_bytes = saved_token_bytes(kLarge)});
  return plan;
}

struct Tried {
  Plan tree;
  Plan seconds;
  Plan chosen;
};

Tried tried(const Plan& plan, MarkRule rule) {
  Tried all{.tree = plan, .seconds = plan, .chosen = plan};
  mark_by_better_order(all.chosen, large_model(), kLarge, rule);
  rule.order = MarkOrder::kSecondsPerByte;
  mark_recompute(all.seconds, large_model(), rule);
  rule.order = MarkOrder::kTree;
  mark_recompute(all.tree, large_model(), rule);
  return all;
}

TEST(MarkChoice, TheFastestStepWinsOfBothOrdersAndNoMark) {
  int by_tree = 0;
  int unmarked = 0;
  int by_seconds = 0;
  Random random(7);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const MarkRule rule{.byte_budget = 8320 * pick(random, 1, 5000),
                        .token_bytes = saved_token_bytes(kLarge)};
    const Tried all = tried(random_plan(seed), rule);
    const Plan none = without_marks(all.chosen);
    const bool tree_is_faster = step_of(all.tree) < step_of(all.seconds);
    const Plan& faster = tree_is_faster ? all.tree : all.seconds;
    const bool saves = step_of(faster) < step_of(none);
    EXPECT_EQ(all.chosen, saves ? faster : none) << "seed " << seed;
    unmarked += !saves && faster != none ? 1 : 0;
    by_tree += tree_is_faster ? 1 : 0;
    by_seconds += step_of(all.tree) > step_of(all.seconds) ? 1 : 0;
  }
  EXPECT_GT(by_tree, 0);
  EXPECT_GT(by_seconds, 0);
  std::printf("no mark was faster in %d of 60\n", unmarked);
}

// Only marks depend on the order.
TEST(MarkChoice, ThePlanIsOtherwiseTheSame) {
  PlanRequest request{.lengths = {65536, 32768, 8192, 8192, 8192, 8192, 4096, 2048, 1024, 100},
                      .world = 4,
                      .sp_max = 4};
  request.byte_budget = 12000 * saved_token_bytes(kLarge);
  const auto made = [&](std::optional<MarkOrder> order) {
    request.mark_order = order;
    return plan(request, kLarge, kGpu).plan;
  };
  const Plan chosen = made(std::nullopt);
  const Plan tree = made(MarkOrder::kTree);
  const Plan seconds = made(MarkOrder::kSecondsPerByte);
  EXPECT_TRUE(chosen.hash == tree.hash || chosen.hash == seconds.hash);
  EXPECT_EQ(step_of(chosen), std::min(step_of(tree), step_of(seconds)));
  const auto unmarked = [](Plan plan) {
    for (Round& round : plan.rounds) {
      for (Placement& placement : round.placements) {
        placement.mark = Mark::kRecompute;
      }
    }
    return plan.rounds;
  };
  EXPECT_EQ(unmarked(chosen), unmarked(tree));
  EXPECT_EQ(unmarked(chosen), unmarked(seconds));
}

TEST(MarkChoice, OrdersHaveNames) {
  EXPECT_EQ(parse_mark_order("auto"), std::nullopt);
  EXPECT_EQ(parse_mark_order("tree"), MarkOrder::kTree);
  EXPECT_EQ(parse_mark_order("seconds-per-byte"), MarkOrder::kSecondsPerByte);
  EXPECT_THROW(parse_mark_order("upwards"), BadInput);
}

}  // namespace
}  // namespace nsp
