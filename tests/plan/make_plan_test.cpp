#include "nsp/plan/make_plan.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"
#include "random_plan.h"

namespace nsp {
namespace {

constexpr std::int32_t kWorld = 4;

Plan plan_of(std::vector<Placement> placements, std::int64_t token_budget = 0) {
  return make_plan(
      {.world = kWorld, .sp_max = 2, .ranks_per_host = 2, .token_budget = token_budget},
      {std::move(placements)});
}

TEST(MakePlan, SortsCountsAndSeals) {
  const Plan plan = plan_of({place(1, 5, {3, 1}), place(0, 6, {0, 2})});
  EXPECT_EQ(plan.num_sequences, 2);
  EXPECT_EQ(plan.num_tokens, 11);
  EXPECT_EQ(plan.rounds[0].placements[0].sequence, 0);
  EXPECT_EQ(plan.predicted.tokens_max, 5);
  EXPECT_EQ(plan.token_budget, 5);
  EXPECT_EQ(plan.hash, plan_hash(plan));
  EXPECT_TRUE(find_violations(plan).empty());
}

TEST(MakePlan, BackendFollowsTheDegree) {
  EXPECT_EQ(place(0, 5, {0, 1}).backend, Backend::kLocal);
  EXPECT_EQ(place(0, 5, {0, 2}).backend, Backend::kUlysses);
  EXPECT_EQ(place(0, 5, {0, 2}).ulysses_degree, 2);
}

TEST(MakePlan, IsInfeasibleAboveTheBudget) {
  EXPECT_TRUE(plan_of({place(0, 6, {0, 2})}, 3).feasible);
  EXPECT_FALSE(plan_of({place(0, 7, {0, 2})}, 3).feasible);
}

TEST(MakePlan, AnEmptyBatchIsAValidPlan) {
  const Plan plan = make_plan({.world = kWorld, .sp_max = 2, .ranks_per_host = 2}, {});
  EXPECT_TRUE(plan.rounds.empty());
  EXPECT_TRUE(find_violations(plan).empty());
}

TEST(MakePlan, RefusesWhatIsNoNode) {
  EXPECT_THROW(plan_of({place(0, 5, {1, 2})}), BadInput);
  EXPECT_THROW(plan_of({place(0, 5, {0, 4})}), BadInput);
  EXPECT_THROW(plan_of({place(0, 0, {0, 1})}), BadInput);
  EXPECT_THROW(plan_of({place(-1, 5, {0, 1})}), BadInput);
  EXPECT_THROW(make_plan({.world = 4, .sp_max = 3, .ranks_per_host = 2}, {}), BadInput);
  EXPECT_THROW(make_plan({.world = 8, .sp_max = 8, .ranks_per_host = 3}, {}), BadInput);
  EXPECT_THROW(make_plan({.world = 4, .token_budget = kMaxTokens + 1}, {}), BadInput);
  EXPECT_THROW(make_plan({.world = 4, .sp_max = 2, .ranks_per_host = 8}, {}), BadInput);
}

TEST(MakePlan, RandomPlansAreSound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_EQ(find_violations(random_plan(seed)), std::vector<std::string>{}) << "seed " << seed;
  }
}

}  // namespace
}  // namespace nsp
