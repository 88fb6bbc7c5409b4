#include "nsp/plan/check.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

// World 4: sequence 0 on all, 1 on ranks 2-3, 2 on rank 0; rank 2 and 3 hold 2 + 3 tokens.
Plan sound_plan() {
  return make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4, .token_budget = 7},
                   {{place(0, 8, {0, 4}), place(1, 6, {2, 2}), place(2, 5, {0, 1})}});
}

// Sealed again: only the planted fault is left to find.
std::vector<std::string> faults(Plan plan) {
  seal(plan);
  return find_violations(plan);
}

void expect_fault(const Plan& plan, const std::string& expected) {
  const std::vector<std::string> found = faults(plan);
  for (const std::string& fault : found) {
    if (fault.find(expected) != std::string::npos) {
      return;
    }
  }
  FAIL() << "not found: " << expected << "; found: " << testing::PrintToString(found);
}

Placement& placement(Plan& plan, std::size_t i) {
  return plan.rounds[0].placements[i];
}

TEST(Check, ASoundPlanHasNoViolation) {
  EXPECT_EQ(faults(sound_plan()), std::vector<std::string>{});
  EXPECT_NO_THROW(check(sound_plan()));
}

TEST(Check, ANegativePredictionIsFound) {
  Plan plan = sound_plan();
  plan.predicted.seconds = -1;
  expect_fault(plan, "predicted.seconds -1.000000: must not be negative");
  plan = sound_plan();
  plan.bound_seconds = -0.5;
  expect_fault(plan, "bound_seconds -0.500000: must not be negative");
}

TEST(Check, ASequenceTwiceIsFound) {
  Plan plan = sound_plan();
  plan.rounds.push_back({.placements = {placement(plan, 2)}});
  set_default_schedule(plan.rounds[1], 4);
  expect_fault(plan, "sequence 2 appears 2 times");
  expect_fault(plan, "num_tokens 19: the placements hold 24");
}

TEST(Check, AMissingSequenceIsFound) {
  Plan plan = sound_plan();
  plan.rounds[0].placements.erase(plan.rounds[0].placements.begin() + 2);
  expect_fault(plan, "sequence 2 is missing");
  plan.num_sequences = 1000000000000;
  expect_fault(plan, "sequences 2 to 999999999999 are missing");
  plan.num_sequences = 1;
  expect_fault(plan, "sequence 1: not among the 1 of the batch");
}

TEST(Check, AnUnalignedNodeIsFound) {
  Plan plan = sound_plan();
  placement(plan, 1).node.first_rank = 1;
  expect_fault(plan, "round 0, sequence 1: node (first_rank 1, degree 2) is not an aligned node");
}

TEST(Check, ABrokenBudgetIsFound) {
  Plan plan = sound_plan();
  plan.token_budget = 5;
  EXPECT_EQ(
      faults(plan),
      (std::vector<std::string>{"round 0, rank 0: holds 7 tokens, above the token budget of 5"}));
}

TEST(Check, ABrokenHashIsFound) {
  Plan plan = sound_plan();
  plan.hash[0] = plan.hash[0] == '0' ? '1' : '0';
  ASSERT_EQ(find_violations(plan).size(), 1U);
  EXPECT_EQ(find_violations(plan)[0].find("hash " + plan.hash), 0U);
  EXPECT_THROW(check(plan), BadInput);
}

TEST(Check, AnInfeasiblePlanSaysSo) {
  Plan plan = sound_plan();
  plan.feasible = false;
  expect_fault(plan, "feasible false");
}

TEST(Check, ABackendThatDoesNotSuitIsFound) {
  Plan plan = sound_plan();
  placement(plan, 0).backend = Backend::kLocal;
  expect_fault(plan, "backend local at degree 4");
  plan = sound_plan();
  placement(plan, 2).backend = Backend::kUlysses;
  expect_fault(plan, "backend ulysses at degree 1");
  plan = sound_plan();
  placement(plan, 0).backend = Backend::kRing;
  expect_fault(plan, "ulysses_degree 4: must be 1 for backend ring");
  placement(plan, 0).backend = Backend::kUspGather;
  expect_fault(plan, "ulysses_degree 4: must divide the degree, 4, and lie between 1 and it");
  plan = sound_plan();
  placement(plan, 0).ulysses_degree = 2;
  expect_fault(plan, "ulysses_degree 2: must equal the degree, 4");
}

TEST(Check, EveryBackendCanBeSound) {
  Plan plan = sound_plan();
  placement(plan, 0).backend = Backend::kGather;
  placement(plan, 0).ulysses_degree = 1;
  seal(plan);
  EXPECT_EQ(faults(plan), std::vector<std::string>{});
  placement(plan, 0).backend = Backend::kUspRing;
  placement(plan, 0).ulysses_degree = 2;
  seal(plan);
  EXPECT_EQ(faults(plan), std::vector<std::string>{});
}

TEST(Check, TwoInnerSizesOfOneBackendAndLevelAreFound) {
  Plan plan = make_plan({.world = 16, .sp_max = 8},
                        {{place(0, 8, 0, {8, Backend::kUspRing, 2}),
                          place(1, 8, 0, {8, Backend::kUspGather, 4}),
                          place(2, 8, 8, {8, Backend::kUspRing, 2})}});
  EXPECT_EQ(faults(plan), std::vector<std::string>{});
  placement(plan, 2).ulysses_degree = 4;
  expect_fault(plan, "backend usp-ring at degree 8: ulysses_degree 2 and 4 differ");
}

TEST(Check, WrongTokensAreFound) {
  Plan plan = sound_plan();
  placement(plan, 2).tokens = 0;
  expect_fault(plan, "sequence 2: 0 tokens: must be from 1");
  plan = sound_plan();
  plan.num_tokens = 20;
  expect_fault(plan, "num_tokens 20: the placements hold 19");
}

TEST(Check, ABadTreeIsFound) {
  Plan plan = sound_plan();
  plan.sp_max = 3;
  expect_fault(plan, "sp_max 3: must be a power of two");
  plan = sound_plan();
  plan.world = 0;
  expect_fault(plan, "world 0");
  plan = sound_plan();
  plan.ranks_per_host = 8;
  expect_fault(plan, "ranks_per_host 8: must divide the world of 4 ranks");
  plan.ranks_per_host = 3;
  expect_fault(plan, "ranks_per_host 3: must divide the world of 4 ranks");
}

TEST(Check, ATokenBudgetBeyondAnyBatchIsFound) {
  Plan plan = sound_plan();
  plan.token_budget = std::int64_t{1} << 62;
  expect_fault(plan, "token_budget 4611686018427387904: must be from 0 to 1099511627776");
}

TEST(Check, ABrokenScheduleIsFound) {
  Plan plan = sound_plan();
  plan.rounds[0].schedule.order.pop_back();
  expect_fault(plan, "round 0, schedule: epilogue:2 is never issued");
  plan = sound_plan();
  plan.rounds[0].schedule.transports.pop_back();
  expect_fault(plan, "transports must name each degree above 1");
  plan = sound_plan();
  plan.rounds[0].schedule.leaf_first.pop_back();
  expect_fault(plan, "leaf_first must have one entry for each of the 4 ranks, not 3");
  plan = sound_plan();
  plan.rounds[0].schedule.leaf_first = {1, 1, 0, 0};
  expect_fault(plan, "leaf_first of rank 1 is 1, but it has 0 leaf sequences");
  plan = sound_plan();
  plan.rounds[0].schedule.cuts = {{.degree = 2, .tokens = 1}};
  expect_fault(plan, "round 0, schedule: the cut of degree 2 at 1 tokens leaves no sequence");
}

TEST(Check, PlacementsOutOfOrderAreFound) {
  Plan plan = sound_plan();
  std::swap(placement(plan, 0), placement(plan, 1));
  expect_fault(plan, "increasing order of sequence");
}

TEST(Check, DroppedSequencesAreCounted) {
  Plan plan = sound_plan();
  plan.num_sequences = 4;
  plan.dropped = {{.sequence = 3, .tokens = 99, .kept = 0, .why = "too long"}};
  EXPECT_TRUE(faults(plan).empty());
  plan.dropped.push_back({.sequence = 0, .tokens = 10, .kept = 8, .why = "too long"});
  EXPECT_TRUE(faults(plan).empty());
  plan.dropped[1].kept = 7;
  expect_fault(plan, "dropped sequence 0: keeps 7 tokens, but 8 are placed");
  plan.dropped[1] = {.sequence = 0, .tokens = 8, .kept = 8, .why = "too long"};
  expect_fault(plan, "dropped sequence 0: kept 8 of 8 tokens");
  plan.dropped[1] = {.sequence = 3, .tokens = 99, .kept = 0, .why = "too long"};
  expect_fault(plan, "sequence 3 appears 2 times");
}

}  // namespace
}  // namespace nsp
