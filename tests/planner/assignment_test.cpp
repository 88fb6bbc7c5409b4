#include "nsp/planner/assignment.h"

#include <gtest/gtest.h>

#include "cases.h"

namespace nsp {
namespace {

TEST(CostTable, AgreesWithTheSharesOfTheModel) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 8, 8, 1 << 20, {70000, 5000, 5000, 129, 1});
  CostTable costs(problem);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::int64_t tokens = problem.sequences[i].tokens;
    for (std::size_t l = 0; l < costs.levels(); ++l) {
      EXPECT_EQ(costs.share(i, l), share(model, tokens, 1 << l));
      EXPECT_EQ(costs.opening_share(i, l), opening_share(model, tokens, 1 << l));
    }
  }
}

TEST(Assignment, FollowsEveryMoveToTheNanosecond) {
  const CostModel models[] = {tiny_model(), large_model()};
  Random random(21);
  for (int i = 0; i < 60; ++i) {
    const CostModel& model = models[i % 2];
    const std::int32_t sp_max = 1 << pick(random, 0, 3);
    const std::int32_t world = sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    const auto lengths = random_lengths(random, pick(random, 1, 40), 15);
    const Problem problem = problem_of(model, world, sp_max, pick(random, 10, 20000), lengths);
    const std::vector<Node> nodes = all_nodes(problem);
    CostTable costs(problem);
    Assignment state(costs);
    state.assign(std::vector<Node>(lengths.size(), nodes.front()));
    for (int step = 0; step < 50; ++step) {
      state.move(random.below(lengths.size()), state.id(nodes[random.below(nodes.size())]));
    }
    const Solution solution = score(problem, state.placement());
    ASSERT_EQ(quality(state).load, solution.load) << "case " << i;
    ASSERT_EQ(state.excess() == 0, solution.feasible) << "case " << i;
    const std::int64_t energy = state.energy();
    state.set_targets({.forward = 1, .backward = 1});
    ASSERT_EQ(energy, state.energy()) << "case " << i;
  }
}

TEST(Assignment, AssigningAtOnceEqualsOneMoveAfterTheOther) {
  const CostModel models[] = {tiny_model(), large_model(), CostModel(kLarge, kGpu, 8, 2)};
  Random random(22);
  for (int i = 0; i < 60; ++i) {
    const std::int32_t sp_max = 1 << pick(random, 0, 3);
    const std::int32_t world = 2 * sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    const auto lengths = random_lengths(random, pick(random, 1, 40), 15);
    const Problem problem =
        problem_of(models[i % 3], world, sp_max, pick(random, 10, 20000), lengths);
    const std::vector<Node> nodes = all_nodes(problem);
    CostTable costs(problem);
    Assignment at_once(costs);
    Assignment by_moves(costs);
    for (int step = 0; step < 6; ++step) {
      std::vector<Assignment::Id> wanted;
      for (std::size_t s = 0; s < lengths.size(); ++s) {
        const bool left_out = random.below(8) == 0;
        const Node& node = nodes[random.below(nodes.size())];
        wanted.push_back(left_out ? Assignment::kNone : at_once.id(node));
      }
      at_once.assign(wanted);
      for (std::size_t s = 0; s < lengths.size(); ++s) {
        if (by_moves.nodes()[s] != Assignment::kNone) {
          by_moves.remove(s);
        }
        if (wanted[s] != Assignment::kNone) {
          by_moves.place(s, wanted[s]);
        }
      }
      ASSERT_EQ(quality(at_once), quality(by_moves)) << "case " << i;
      ASSERT_EQ(at_once.area(), by_moves.area()) << "case " << i;
      ASSERT_EQ(at_once.energy(), by_moves.energy()) << "case " << i;
      ASSERT_EQ(at_once.nodes(), by_moves.nodes()) << "case " << i;
    }
  }
}

TEST(Assignment, RemovingEverythingLeavesTheFixedPart) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 4, 1000, {900, 800, 3});
  CostTable costs(problem);
  Assignment state(costs);
  const Passes empty = state.largest();
  EXPECT_EQ(empty, model.dense_fixed());
  state.assign(std::vector<Node>{{0, 4}, {0, 2}, {3, 1}});
  EXPECT_GT(state.traffic(), 0);
  state.assign(std::vector<Assignment::Id>(3, Assignment::kNone));
  EXPECT_EQ(state.largest(), empty);
  EXPECT_EQ(state.traffic(), 0);
  EXPECT_EQ(state.area(), 4 * empty.sum());
}

TEST(Assignment, FluidRoomIsTheLeastOfTimeAndTokens) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 2, 2, 1000, {600});
  CostTable costs(problem);
  Assignment state(costs);
  state.place(0, state.id({0, 1}));
  const Passes all{.forward = 1'000'000'000, .backward = 1'000'000'000};
  state.set_fluid(all, {.forward = 1000, .backward = 1000});
  EXPECT_EQ(state.room(0), 400);
  EXPECT_EQ(state.room(1), 1000);
  EXPECT_EQ(state.energy(), -1400);
  Passes tight = model.dense_fixed();
  tight += {.forward = 50'000, .backward = 1'000'000};
  state.set_fluid(tight, {.forward = 1000, .backward = 1000});
  EXPECT_NEAR(static_cast<double>(state.room(1)), 50, 1);
}

}  // namespace
}  // namespace nsp
