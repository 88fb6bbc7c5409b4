#include "nsp/planner/planner.h"

#include <thread>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/error.h"
#include "nsp/plan/check.h"

namespace nsp {
namespace {

std::string message(const PlanRequest& request, const ModelShape& shape = kTiny) {
  try {
    plan(request, shape, find_profile(shape, "cpu-gloo"));
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, RandomRequestsGiveCheckedPlans) {
  Random random(13);
  for (int i = 0; i < 200; ++i) {
    PlanRequest request;
    request.sp_max = 1 << pick(random, 0, 3);
    request.world = request.sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    request.lengths = random_lengths(random, pick(random, 0, 60), 13);
    request.planner = std::vector<std::string>{
        "nsp", "algorithm1", "nsp-2l", "megatron-dcp", "static", "static:1"}[random.below(6)];
    request.over_length = OverLength(random.below(3));
    request.token_budget = random.below(2) == 0 ? 0 : pick(random, 1, 4000);
    const PlanResult result = plan(request, kTiny, kCpu);
    if (!result.why_infeasible.empty()) {
      EXPECT_EQ(request.over_length, OverLength::kError);
      EXPECT_FALSE(result.plan.feasible);
      continue;
    }
    ASSERT_EQ(find_violations(result.plan), std::vector<std::string>{}) << "case " << i;
    EXPECT_TRUE(result.plan.feasible) << "case " << i;
    EXPECT_LE(result.plan.bound_seconds, load(result.plan) + 1e-12);
  }
}

TEST(Plan, NoSequencesGiveAPlanWithoutRounds) {
  for (const char* planner :
       {"nsp", "algorithm1", "nsp-2l", "megatron-dcp", "static", "static:2"}) {
    const PlanResult result =
        plan({.lengths = {}, .world = 4, .sp_max = 4, .planner = planner}, kTiny, kCpu);
    EXPECT_TRUE(result.plan.feasible);
    EXPECT_TRUE(result.plan.rounds.empty());
    EXPECT_EQ(find_violations(result.plan), std::vector<std::string>{});
  }
}

TEST(Plan, SameInputsGiveTheSameBytesOnEveryThread) {
  Random random(17);
  PlanRequest request{.lengths = random_lengths(random, 300, 13), .world = 8, .sp_max = 8};
  const std::string expected = bytes(plan(request, kTiny, kCpu).plan);
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string& out : found) {
    threads.emplace_back([&] { out = bytes(plan(request, kTiny, kCpu).plan); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& text : found) {
    EXPECT_EQ(text, expected);
  }
}

TEST(Plan, TooLongIsAnAnswerThatSaysWhatWouldFit) {
  const PlanResult result =
      plan({.lengths = {5, 100}, .world = 4, .sp_max = 4, .token_budget = 20}, kTiny, kCpu);
  EXPECT_FALSE(result.plan.feasible);
  EXPECT_EQ(
      result.why_infeasible,
      "sequence 1, the longest, has 100 tokens, but degree 4 x token_budget 20 holds 80: give a "
      "token_budget of "
      "25, or over_length skip or truncate");
}

TEST(Plan, OverLengthPoliciesAreRecorded) {
  PlanRequest request{.lengths = {5, 100}, .world = 4, .sp_max = 4, .token_budget = 20};
  request.over_length = OverLength::kSkip;
  const Plan skipped = plan(request, kTiny, kCpu).plan;
  ASSERT_EQ(skipped.dropped.size(), 1U);
  EXPECT_EQ(skipped.dropped[0].kept, 0);
  EXPECT_EQ(skipped.num_tokens, 5);
  EXPECT_EQ(skipped.num_sequences, 2);
  request.over_length = OverLength::kTruncate;
  const Plan cut = plan(request, kTiny, kCpu).plan;
  EXPECT_EQ(cut.dropped[0].kept, 80);
  EXPECT_EQ(cut.num_tokens, 85);
  EXPECT_EQ(find_violations(cut), std::vector<std::string>{});
  EXPECT_EQ(parse_over_length("truncate"), OverLength::kTruncate);
  EXPECT_THROW(parse_over_length("cut"), BadInput);
}

TEST(Plan, DefaultBudgetIsSixFifthsOfTheMean) {
  EXPECT_EQ(plan({.lengths = {100, 101}, .world = 4, .sp_max = 4}, kTiny, kCpu).plan.token_budget,
            61);
}

TEST(Plan, StaticPicksTheBestDegreeAndNeverAnotherOne) {
  PlanRequest request{
      .lengths = {4000, 100, 100, 100}, .world = 4, .sp_max = 4, .token_budget = 3000};
  request.planner = "static";
  const Plan best = plan(request, kTiny, kCpu).plan;
  double least = 1e9;
  for (const char* planner : {"static:2", "static:4"}) {
    request.planner = planner;
    const Predicted given = plan(request, kTiny, kCpu).plan.predicted;
    least = std::min(least, given.forward + given.backward);
  }
  EXPECT_DOUBLE_EQ(best.predicted.forward + best.predicted.backward, least);
  request.planner = "static:1";
  EXPECT_FALSE(plan(request, kTiny, kCpu).why_infeasible.empty());
}

// The default has the same nodes inside hosts as the profile's 8, and divides the world.
TEST(Plan, RanksPerHostDivideTheWorld) {
  const auto hosted = [](std::int32_t world) {
    return plan({.lengths = {9}, .world = world}, kTiny, kCpu).plan.ranks_per_host;
  };
  EXPECT_EQ(hosted(6), 6);
  EXPECT_EQ(hosted(8), 8);
  EXPECT_EQ(hosted(12), 4);
  EXPECT_EQ(hosted(13), 1);
  EXPECT_EQ(hosted(24), 8);
}

TEST(Plan, AWorldBeyondTheClusterIsRefused) {
  PlanRequest request{.lengths = {9}, .world = 2};
  const Profile two = find_profile(kTiny, "two-h200");
  EXPECT_TRUE(plan(request, kTiny, two).plan.feasible);
  request.world = 64;
  EXPECT_THROW(plan(request, kTiny, two), BadInput);
}

TEST(Plan, BadRequestsAreOneSentence) {
  EXPECT_EQ(message({.lengths = {1}, .world = 4, .sp_max = 3}).substr(0, 9), "sp_max 3:");
  EXPECT_EQ(message({.lengths = {1}, .world = 6, .sp_max = 4}).substr(0, 9), "sp_max 4:");
  EXPECT_EQ(message({.lengths = {1}, .world = 12, .ranks_per_host = 8, .sp_max = 4}),
            "ranks_per_host 8: must divide the world of 12 ranks");
  EXPECT_EQ(message({.lengths = {3, 0}, .world = 1, .sp_max = 1}).substr(0, 13), "lengths[1] 0:");
  EXPECT_EQ(message({.lengths = {3, -7}, .world = 1, .sp_max = 1}).substr(0, 14), "lengths[1] -7:");
  EXPECT_EQ(message({.lengths = {3}, .world = 1, .sp_max = 1, .token_budget = -1}).substr(0, 16),
            "token_budget -1:");
  EXPECT_EQ(message({.lengths = {3}, .planner = "fast"}),
            "planner 'fast': must be one of nsp, algorithm1, nsp-2l, megatron-dcp, flexsp, static, "
            "static-tokens, static-usp, static:K, static-tokens:K, static-usp:K (K: a degree)");
  EXPECT_EQ(message({.lengths = {3}, .world = 4, .sp_max = 4, .planner = "static:8"}),
            "planner 'static:8': the degree must be one of 1, 2, 4");
  EXPECT_EQ(message({.lengths = {3}, .planner = "static:2x"}).substr(0, 19), "planner 'static:2x'");
  EXPECT_EQ(message({.lengths = {3}, .planner = "nsp:2"}).substr(0, 15), "planner 'nsp:2'");
  EXPECT_EQ(message({.lengths = {3}, .planner = "static:"}).substr(0, 17), "planner 'static:'");
  EXPECT_EQ(message({.lengths = {3}, .effort = "slow"}),
            "effort 'slow': must be fast, default or thorough");
}

TEST(Plan, HeadsThatTheDegreeDoesNotDivideAreRefusedWithTheAllowedOnes) {
  ModelShape shape = kTiny;
  shape.name = "four";
  shape.heads = 4;
  shape.kv_heads = 4;
  EXPECT_EQ(message({.lengths = {9}, .world = 8, .sp_max = 8}, shape),
            "sp_max 8: does not divide the 4 query heads of four; allowed: 1, 2, 4");
}

}  // namespace
}  // namespace nsp
