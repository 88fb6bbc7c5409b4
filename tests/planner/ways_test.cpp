// The search over ways and with expert parallelism: exact loads, small optima, bounds, promises.
#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/error.h"
#include "nsp/plan/check.h"
#include "nsp/planner/assignment.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/nsp.h"
#include "nsp/planner/planner.h"
#include "nsp/sim/simulate.h"

namespace nsp {
namespace {

// Hosts of 2 ranks, so that usp has hosts to join.
CostModel two_hosts(std::int32_t ep) {
  return CostModel(kLarge, kGpu, 2, ep);
}

Problem random_problem(Random& random, const CostModel& model, std::int64_t most) {
  const std::int32_t sp_max = std::max(model.ep(), 1 << pick(random, 0, 3));
  const std::int32_t world = sp_max * static_cast<std::int32_t>(pick(random, 1, 2));
  const auto lengths = random_lengths(random, pick(random, 1, most), 16);
  Problem problem = problem_of(model, world, sp_max, pick(random, 2000, 60000), lengths);
  problem.backends.assign(std::begin(kAllBackends), std::end(kAllBackends));
  return problem;
}

TEST(Ways, AssignmentsFollowEveryMoveAndUndoToTheNanosecond) {
  Random random(71);
  for (int i = 0; i < 60; ++i) {
    const CostModel model = two_hosts(1 << pick(random, 0, 2));
    const Problem problem = random_problem(random, model, 30);
    const std::vector<Spot> spots = all_spots(problem);
    CostTable costs(problem);
    Assignment state(costs);
    state.assign(std::vector<Node>(problem.sequences.size(), Node{0, 1}));
    for (int step = 0; step < 60; ++step) {
      const Spot spot = spots[random.below(spots.size())];
      const auto nodes = state.nodes();
      const std::int64_t energy = state.energy();
      const Quality before = quality(state);
      state.begin();
      state.move(random.below(nodes.size()), state.id(spot.first_rank, spot.way));
      state.move(random.below(nodes.size()), state.id(spot.first_rank, spot.way));
      if (step % 3 == 0) {
        state.undo();
        ASSERT_EQ(state.nodes(), nodes);
        ASSERT_EQ(state.energy(), energy);
        ASSERT_EQ(quality(state), before);
      } else {
        state.keep();
      }
    }
    const Solution solution = score(problem, state.placement());
    ASSERT_EQ(quality(state).load, solution.load) << "case " << i;
    ASSERT_EQ(state.excess() == 0, solution.feasible) << "case " << i;
  }
}

TEST(Ways, NoRandomPlanIsBelowTheBound) {
  Random random(73);
  for (int i = 0; i < 600; ++i) {
    const CostModel model = two_hosts(1 << (i % 4));
    Problem problem = random_problem(random, model, 20);
    const std::vector<Spot> spots = all_spots(problem);
    std::vector<Placement> placements;
    for (std::size_t j = 0; j < problem.sequences.size(); ++j) {
      placements.push_back(place_on(problem, j, spots[random.below(spots.size())]));
    }
    const Solution solution = score(problem, placements);
    problem.token_budget = solution.tokens_max;
    ASSERT_LE(lower_bound(problem), solution.load) << "case " << i;
  }
}

// Every assignment of few sequences in every way, with expert groups of 1, 2 and 4.
TEST(Ways, TinyInstancesReachTheOptimum) {
  Random random(75);
  int reached = 0;
  int cases = 0;
  for (int i = 0; i < 90; ++i) {
    const CostModel model = two_hosts(1 << (i % 3));
    const bool all = i % 2 == 0;
    const auto lengths = random_lengths(random, pick(random, 1, all ? 3 : 4), 16);
    const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    Problem problem = problem_of(model, 4, 4, sum * pick(random, 12, 24) / 40 + 1, lengths);
    if (all) {
      problem.backends.assign(std::begin(kAllBackends), std::end(kAllBackends));
    }
    const Solution optimum = exhaustive(problem);
    const Solution found = nsp_round(problem, nsp_effort("default"));
    ASSERT_EQ(found.feasible, optimum.feasible) << "case " << i;
    if (optimum.feasible) {
      ++cases;
      ASSERT_GE(found.load, optimum.load) << "case " << i;
      ASSERT_LE(lower_bound(problem), optimum.load) << "case " << i;
      // Loads within 1 / 8192 count as equal and go to fewer bytes.
      reached += found.load - optimum.load <= optimum.load / 8192 ? 1 : 0;
    }
  }
  std::printf("optimum reached in %d of %d cases\n", reached, cases);
  EXPECT_GE(reached * 100, cases * 90);
}

TEST(Ways, MoreBackendsAreNeverWorse) {
  Random random(77);
  for (int i = 0; i < 12; ++i) {
    PlanRequest request;
    request.sp_max = 16;
    request.world = 16;
    request.ep = i % 2 == 0 ? 1 : 8;
    request.lengths = random_lengths(random, pick(random, 5, 60), 17);
    request.over_length = OverLength::kSkip;
    request.ranks_per_host = 4;
    const Plan heads = plan(request, kLarge, kGpu).plan;
    request.backends = {"ulysses", "usp"};
    const Plan fewer = plan(request, kLarge, kGpu).plan;
    request.backends = {"all"};
    const Plan all = plan(request, kLarge, kGpu).plan;
    EXPECT_EQ(find_violations(all), std::vector<std::string>{}) << "case " << i;
    EXPECT_LE(load(fewer), load(heads) + 1e-12) << "case " << i;
    EXPECT_LE(load(all), load(fewer) + 1e-12) << "case " << i;
    request.backends = {"ulysses"};
    request.planner = "static-usp";
    const Plan usp = plan(request, kLarge, kGpu).plan;
    request.planner = "nsp";
    request.backends = {"all"};
    EXPECT_TRUE(!usp.feasible || load(all) <= load(usp) + 1e-12) << "case " << i;
    EXPECT_LE(all.bound_seconds, load(all)) << "case " << i;
    EXPECT_EQ(plan(request, kLarge, kGpu).plan.hash, all.hash) << "case " << i;
  }
}

TEST(Ways, MoreBackendsAreNeverSlowerSteps) {
  Random random(78);
  for (int i = 0; i < 4; ++i) {
    PlanRequest request{
        .lengths = random_lengths(random, 100, 15), .world = 16, .ranks_per_host = 4, .sp_max = 16};
    request.effort = i % 2 == 0 ? "default" : "thorough";
    const auto step = [&](const std::vector<std::string>& backends) {
      request.backends = backends;
      return simulate(plan(request, kLarge, kGpu).plan, kLarge, kGpu).step;
    };
    const std::int64_t fewer = step({"ulysses", "usp"});
    EXPECT_LE(fewer, step({"ulysses"})) << "case " << i;
    EXPECT_LE(step({"all"}), fewer) << "case " << i;
  }
}

TEST(Ways, RingAndGatherGoBeyondTheHeads) {
  ModelShape shape = kLarge;
  shape.heads = 4;
  const PlanRequest request{.lengths = {200000, 100},
                            .world = 16,
                            .ranks_per_host = 2,
                            .sp_max = 16,
                            .backends = {"ulysses", "usp"}};
  const Profile profile = find_profile(shape, "h200");
  const Plan found = plan(request, shape, profile).plan;
  EXPECT_EQ(found.rounds[0].placements[0].node.degree, 16);
  EXPECT_EQ(found.rounds[0].placements[0].ulysses_degree, 2);
  PlanRequest narrow = request;
  narrow.backends = {"ulysses"};
  EXPECT_THROW(plan(narrow, shape, profile), BadInput);
}

TEST(Ways, UspOnOneHostSaysWhatItNeeds) {
  const PlanRequest request{
      .lengths = {100}, .world = 8, .ranks_per_host = 8, .sp_max = 8, .backends = {"usp"}};
  try {
    plan(request, kLarge, kGpu);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "sp_max 8: is not more than the 8 ranks of a host, and usp spans hosts: add "
                 "another backend for smaller degrees; allowed: 1");
  }
}

// Loads with expert groups are counted in the baselines' plans as in the search.
TEST(Ways, WithExpertGroupsNoBaselineIsBelow) {
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    PlanRequest request;
    request.sp_max = 16;
    request.world = 16;
    request.ep = 2 << (i % 4);
    request.lengths = random_lengths(random, pick(random, 5, 80), 17);
    request.over_length = OverLength::kSkip;
    request.ranks_per_host = 4;
    const Plan own = plan(request, kLarge, kGpu).plan;
    for (const char* rival : {"algorithm1", "static", "static-tokens", "nsp-2l", "megatron-dcp"}) {
      request.planner = rival;
      const Plan other = plan(request, kLarge, kGpu).plan;
      EXPECT_TRUE(!other.feasible || load(own) <= load(other) + 1e-12) << i << " " << rival;
    }
    request.planner = "nsp";
  }
}

TEST(Ways, ExpertGroupsAreChecked) {
  PlanRequest request{.lengths = {100}, .world = 12, .sp_max = 4, .ep = 8};
  EXPECT_THROW(plan(request, kLarge, kGpu), BadInput);  // does not divide the world
  request.ep = 3;
  EXPECT_THROW(plan(request, kLarge, kGpu), BadInput);  // no power of two
  request.ep = 4;
  EXPECT_NO_THROW(plan(request, kLarge, kGpu));
  const ModelShape dense = find_model("llama3-8b");
  EXPECT_THROW(plan(request, dense, find_profile(dense, "h200")), BadInput);
  request.ep = 1;
  request.backends = {"ulises"};
  EXPECT_THROW(plan(request, kLarge, kGpu), BadInput);
}

}  // namespace
}  // namespace nsp
