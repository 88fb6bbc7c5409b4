#include "nsp/planner/schedules.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/wave.h"
#include "nsp/sim/best_order.h"
#include "nsp/sim/simulate.h"

namespace nsp {
namespace {

constexpr std::int32_t kWorld = 16;

// Long sequences over all ranks or half of them, and now and then a leaf.
std::vector<Placement> high_in_the_tree(Random& random) {
  std::vector<Placement> placements;
  for (std::int64_t sequence = 0; sequence < 6; ++sequence) {
    const auto tokens = static_cast<std::int64_t>(2048 << random.below(6));
    const bool is_leaf = random.below(4) == 0;
    const std::int32_t degree = is_leaf ? 1 : random.below(2) == 0 ? 8 : 16;
    const auto nodes = static_cast<std::uint64_t>(kWorld / degree);
    const Node node{static_cast<std::int32_t>(random.below(nodes)) * degree, degree};
    placements.push_back(place(sequence, is_leaf ? 2048 : tokens, node));
  }
  return placements;
}

std::int64_t whole_step(const CostModel& model, std::vector<Round> rounds) {
  for (Round& round : rounds) {
    set_order(best_orders(model, round, kWorld).whole, round.schedule);
  }
  return simulated_step(model, kLarge, rounds, kWorld);
}

TEST(Schedules, NoCutMakesAStepSlower) {
  const CostModel model = large_model();
  Random random(5);
  int taken = 0;
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    std::vector<Round> rounds(1 + random.below(2));
    for (Round& round : rounds) {
      round.placements = high_in_the_tree(random);
    }
    std::vector<Round> chosen = rounds;
    const std::int64_t step = choose_schedules({&model, &kLarge, kWorld}, chosen);
    EXPECT_EQ(step, simulated_step(model, kLarge, chosen, kWorld));
    EXPECT_LE(step, whole_step(model, rounds));
    bool cut = false;
    for (const Round& round : chosen) {
      EXPECT_EQ(find_cut_fault(round), "");
      EXPECT_EQ(find_order_fault(round, round.schedule.order), "");
      cut = cut || !round.schedule.cuts.empty();
    }
    taken += cut ? 1 : 0;
    Round alone = rounds[0];
    choose_schedule({&model, &kLarge, kWorld}, alone);
    EXPECT_LE(simulated_step(model, kLarge, {alone}, kWorld), whole_step(model, {rounds[0]}));
  }
  EXPECT_GT(taken, 5);
}

}  // namespace
}  // namespace nsp
