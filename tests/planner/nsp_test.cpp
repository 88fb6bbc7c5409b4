#include "nsp/planner/nsp.h"

#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/plan/check.h"
#include "nsp/planner/assignment.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/local_search.h"
#include "nsp/planner/planner.h"
#include "nsp/planner/skeleton.h"
#include "nsp/sim/simulate.h"

namespace nsp {
namespace {

// A rank that runs sequences at several degrees in one round.
bool nests(const Plan& plan) {
  return std::ranges::any_of(plan.rounds, [](const Round& round) {
    return std::ranges::any_of(round.placements, [&](const Placement& inner) {
      return std::ranges::any_of(round.placements, [&](const Placement& outer) {
        return outer.node.degree > inner.node.degree && outer.node.contains(inner.node.first_rank);
      });
    });
  });
}

TEST(Nsp, TinyInstancesReachTheOptimum) {
  const CostModel models[] = {tiny_model(), large_model()};
  Random random(51);
  int reached = 0;
  int cases = 0;
  for (int i = 0; i < 400; ++i) {
    const CostModel& model = models[i % 2];
    const std::int32_t world = 1 << pick(random, 0, 3);
    const std::int64_t most = world == 8 ? 4 : world == 4 ? 5 : 6;
    const auto lengths = random_lengths(random, pick(random, 1, most), 15);
    const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const Problem problem =
        problem_of(model, world, world, sum * pick(random, 10, 20) / 10 / world + 1, lengths);
    const Solution optimum = exhaustive(problem);
    const Solution found = nsp_round(problem, nsp_effort("default"));
    ASSERT_EQ(found.feasible, optimum.feasible) << "case " << i;
    if (optimum.feasible) {
      ++cases;
      ASSERT_GE(found.load, optimum.load) << "case " << i;
      ASSERT_LE(lower_bound(problem), optimum.load) << "case " << i;
      reached += found.load == optimum.load ? 1 : 0;
    }
  }
  std::printf("optimum reached in %d of %d cases\n", reached, cases);
  EXPECT_GE(reached * 100, cases * 95);
}

TEST(Nsp, NeverWorseThanAnyBaseline) {
  Random random(53);
  for (int i = 0; i < 60; ++i) {
    PlanRequest request;
    request.sp_max = 1 << pick(random, 0, 4);
    request.world = request.sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    request.lengths = random_lengths(random, pick(random, 1, 80), 15);
    request.token_budget = random.below(2) == 0 ? 0 : pick(random, 500, 30000);
    request.over_length = OverLength::kSkip;
    const Plan own = plan(request, kLarge, kGpu).plan;
    ASSERT_EQ(find_violations(own), std::vector<std::string>{}) << "case " << i;
    ASSERT_LE(own.bound_seconds, load(own) + 1e-12) << "case " << i;
    for (const char* rival : {"algorithm1", "static", "nsp-2l", "megatron-dcp"}) {
      request.planner = rival;
      const Plan other = plan(request, kLarge, kGpu).plan;
      if (other.feasible && !other.rounds.empty()) {
        ASSERT_TRUE(own.feasible) << "case " << i << " " << rival;
        ASSERT_LE(load(own), load(other) + 1e-12) << "case " << i << " " << rival;
      }
    }
  }
}

TEST(Nsp, PermutedInputGivesTheSameLoad) {
  Random random(57);
  for (int i = 0; i < 10; ++i) {
    // Distinct multiples of 8 tokens on 8 ranks: no remainders, no ties that the index decides.
    std::vector<std::int64_t> lengths;
    for (std::int64_t j = 1; j <= 50; ++j) {
      lengths.push_back(8 * j * pick(random, 1, 3) + 8 * 1000 * (j % 7 == 0));
    }
    std::ranges::sort(lengths);
    const auto repeated = std::ranges::unique(lengths);
    lengths.erase(repeated.begin(), repeated.end());
    const PlanRequest request{.lengths = lengths, .world = 8, .sp_max = 8};
    PlanRequest reversed = request;
    std::ranges::reverse(reversed.lengths);
    EXPECT_EQ(load(plan(request, kLarge, kGpu).plan), load(plan(reversed, kLarge, kGpu).plan));
  }
}

TEST(Nsp, EveryEffortPlansEdgeCases) {
  const std::vector<std::vector<std::int64_t>> batches = {
      {1}, {1, 1, 1}, {131072}, std::vector<std::int64_t>(64, 4096), {100000, 5}, {65536, 65536}};
  for (const char* effort : {"fast", "default", "thorough"}) {
    for (const auto& lengths : batches) {
      const Plan found =
          plan({.lengths = lengths, .world = 8, .sp_max = 8, .effort = effort}, kLarge, kGpu).plan;
      EXPECT_TRUE(found.feasible) << effort;
      EXPECT_EQ(find_violations(found), std::vector<std::string>{}) << effort;
    }
  }
}

TEST(Nsp, MoreEffortIsNeverASlowerStep) {
  Random random(5);
  for (int i = 0; i < 8; ++i) {
    PlanRequest request{
        .lengths = random_lengths(random, 150, 14), .world = 16, .ranks_per_host = 4, .sp_max = 8};
    const auto step = [&](const char* effort) {
      request.effort = effort;
      return simulate(plan(request, kLarge, kGpu).plan, kLarge, kGpu).step;
    };
    EXPECT_LE(step("thorough"), step("default")) << "case " << i;
  }
}

TEST(Nsp, OfEqualLoadsTheOneWithLessCommunicationWins) {
  // Two trees of two ranks, three equal sequences: one tree holds two of them and sets the load, so
  // splitting the third over the other tree wins nothing.
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 2, 4000, {2900, 2900, 2900, 300});
  const std::vector<Node> spread = {{0, 1}, {1, 1}, {2, 2}, {2, 2}};
  const Solution found =
      nsp_round(problem, nsp_effort("default"), {score(problem, spread).placements});
  EXPECT_EQ(found.load, score(problem, spread).load);
  for (const Placement& placement : found.placements) {
    EXPECT_EQ(placement.node.degree, 1);
  }
}

TEST(Nsp, SmallBatchesOfTheDefaultRunNest) {
  // Four gloo ranks, 24K tokens, a few dozen sequences of a long-tailed text.
  Random random(59);
  double sum = 0;
  double worst = 0;
  int nested = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::int64_t> lengths = {pick(random, 4000, 16000)};
    std::int64_t left = 24576 - lengths[0];
    while (left > 0) {
      lengths.push_back(std::min(left, pick(random, 50, 1 << pick(random, 7, 11))));
      left -= lengths.back();
    }
    const Plan found = plan({.lengths = lengths, .world = 4, .sp_max = 4}, kTiny, kCpu).plan;
    ASSERT_TRUE(found.feasible);
    const double gap = load(found) / found.bound_seconds - 1;
    sum += gap;
    worst = std::max(worst, gap);
    nested += nests(found) ? 1 : 0;
  }
  std::printf("gap on four ranks: mean %.2f %%, worst %.2f %%, %d of 20 nest\n",
              sum * 5,
              worst * 100,
              nested);
  EXPECT_EQ(nested, 20);
}

TEST(LocalSearch, NeverEndsWorseThanItBegan) {
  const CostModel model = large_model();
  Random random(61);
  for (int i = 0; i < 30; ++i) {
    const Problem problem =
        problem_of(model, 8, 8, pick(random, 2000, 30000), random_lengths(random, 50, 14));
    const std::vector<Node> nodes = all_nodes(problem);
    CostTable costs(problem);
    Assignment state(costs);
    std::vector<Node> chosen;
    for (int j = 0; j < 50; ++j) {
      chosen.push_back(nodes[random.below(nodes.size())]);
    }
    state.assign(chosen);
    const Quality before = quality(state);
    local_search(state, random, 20000);
    EXPECT_LE(quality(state), before) << "case " << i;
  }
}

TEST(Skeleton, PlacesEverySequence) {
  const CostModel model = large_model();
  Random random(63);
  const Problem problem = problem_of(model, 16, 8, 40000, random_lengths(random, 200, 16));
  CostTable costs(problem);
  Assignment state(costs);
  state.assign(std::vector<Node>(200, Node{0, 1}));
  anneal_skeleton(state, costs, random, {.work = 20000, .longest = 30});
  EXPECT_EQ(std::ranges::count(state.nodes(), Assignment::kNone), 0);
  EXPECT_LT(quality(state).load, 2 * lower_bound(problem));
}

}  // namespace
}  // namespace nsp
