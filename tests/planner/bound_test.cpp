#include "nsp/planner/bound.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

TEST(Bound, OneSequenceOnOneRankIsExact) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 1, 1, 1 << 20, {5000});
  const std::vector<std::int64_t> tokens = {5000};
  EXPECT_EQ(lower_bound(model, tokens, 1, 1, 1 << 20), score(problem, {Node{0, 1}}).load);
  EXPECT_EQ(lower_bound(model, {}, 4, 4, 100), 0);
}

TEST(Bound, TheLongestSequenceCountsAlone) {
  const CostModel model = large_model();
  const std::vector<std::int64_t> one = {200000};
  const std::vector<std::int64_t> more = {200000, 10};
  EXPECT_GE(lower_bound(model, more, 64, 4, 0), lower_bound(model, one, 64, 4, 0));
  EXPECT_GT(lower_bound(model, one, 64, 4, 0), lower_bound(model, one, 64, 32, 0));
}

TEST(Bound, NoRandomPlanThatKeepsTheBudgetIsBelow) {
  const CostModel models[] = {tiny_model(), large_model()};
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const CostModel& model = models[i % 2];
    const std::int32_t sp_max = 1 << pick(random, 0, 3);
    const std::int32_t world = sp_max * static_cast<std::int32_t>(pick(random, 1, 4));
    const auto lengths = random_lengths(random, pick(random, 1, 30), 14);
    Problem problem = problem_of(model, world, sp_max, 0, lengths);
    const std::vector<Node> nodes = all_nodes(problem);
    std::vector<Node> chosen;
    for (std::size_t j = 0; j < lengths.size(); ++j) {
      chosen.push_back(nodes[random.below(nodes.size())]);
    }
    const Solution solution = score(problem, chosen);
    problem.token_budget = solution.tokens_max;  // the tightest budget that this plan keeps
    ASSERT_LE(lower_bound(model, lengths, world, sp_max, solution.tokens_max), solution.load)
        << "case " << i;
    ASSERT_LE(lower_bound(model, lengths, world, sp_max, 0), solution.load) << "case " << i;
  }
}

TEST(Bound, HoldsForSeveralRounds) {
  const CostModel model = large_model();
  Random random(9);
  for (int i = 0; i < 100; ++i) {
    const auto lengths = random_lengths(random, pick(random, 2, 20), 14);
    const std::int64_t rounds = pick(random, 1, 4);
    std::vector<std::vector<std::int64_t>> dealt(static_cast<std::size_t>(rounds));
    for (const std::int64_t length : lengths) {
      dealt[random.below(dealt.size())].push_back(length);
    }
    std::int64_t load = 0;
    std::int64_t budget = 1;
    for (const auto& hand : dealt) {
      if (hand.empty()) {
        continue;
      }
      const Problem problem = problem_of(model, 4, 4, 0, hand);
      const std::vector<Node> nodes = all_nodes(problem);
      std::vector<Node> chosen;
      for (std::size_t j = 0; j < hand.size(); ++j) {
        chosen.push_back(nodes[random.below(nodes.size())]);
      }
      const Solution solution = score(problem, chosen);
      load += solution.load;
      budget = std::max(budget, solution.tokens_max);
    }
    ASSERT_LE(lower_bound(model, lengths, 4, 4, budget), load) << "case " << i;
  }
}

}  // namespace
}  // namespace nsp
