#include "nsp/plan/plan_text.h"

#include <gtest/gtest.h>

#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

Plan example() {
  Plan plan = make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4, .token_budget = 8000},
                        {{place(0, 20000, {0, 4}), place(1, 3000, {2, 2}), place(2, 500, {0, 1})}},
                        {{.sequence = 3, .tokens = 99999, .kept = 0, .why = "too long"}});
  plan.predicted.forward = 2e-3;
  plan.predicted.backward = 4e-3;
  plan.bound_seconds = 5e-3;
  return plan;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing '" << part << "' in\n" << text;
}

TEST(PlanText, SummaryGivesNodesTokensLoadAndGap) {
  const std::string text = summary(example());
  expect_contains(text, "world 4 ranks (4 a host), sp_max 4, token budget 8000 a rank");
  expect_contains(text, "    0       4      1          1        20000   85.1%     20000     20000");
  // Ranks 2 and 3 hold 5000 + 1500 tokens, rank 1 only its quarter of the longest.
  expect_contains(text, "tokens a rank 5000 to 6500, mean 5875; fullest uses 81.2% of the budget");
  expect_contains(
      text, "load 6.000 ms a layer (forward 2.000, backward 4.000), bound 5.000 ms, gap 20.00%");
  expect_contains(text, "dropped: sequence 3, kept 0 of 99999 tokens: too long");
}

TEST(PlanText, LeavesThatRunFirstAreCounted) {
  Plan plan = example();
  expect_contains(summary(plan), "gap 20.00%");
  EXPECT_EQ(summary(plan).find("before the first level"), std::string::npos);
  plan.rounds[0].schedule.leaf_first = {1, 0, 0, 0};
  for (const std::string& text : {summary(plan), explanation(plan)}) {
    expect_contains(text, "leaf sequences, on 1 rank, run before the first level");
  }
}

TEST(PlanText, LevelsInTwoWavesAreNamed) {
  Plan plan = example();
  plan.rounds[0].placements.push_back(place(9, 700, {0, 4}));
  plan.rounds[0].schedule.cuts = {{.degree = 4, .tokens = 1024}};
  for (const std::string& text : {summary(plan), explanation(plan)}) {
    expect_contains(text,
                    "round 0: degree 4 runs in two waves: 1 of its 2 sequences, of up to 1024 "
                    "tokens, apart from the longer ones");
  }
}

TEST(PlanText, ExplanationSaysWhyEachClassWentWhere) {
  const std::string text = explanation(example());
  expect_contains(text, "up to 1K");
  expect_contains(text, "one rank holds it");
  expect_contains(text, "1K-4K");
  expect_contains(text, "chosen: spreads its seconds");
  expect_contains(text, "16K-64K");
  expect_contains(text, "needs it: 20000 tokens pass the budget of 2 ranks");
}

TEST(PlanText, OneIsNoPlural) {
  expect_contains(summary(make_plan({}, {{place(0, 1, {0, 1})}})),
                  "1 sequence, 1 token, 1 round\n");
  expect_contains(summary(make_plan({}, {})), "world 1 rank (1 a host)");
}

TEST(PlanText, AnEmptyPlanHasASummary) {
  expect_contains(summary(make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {})),
                  "0 sequences, 0 tokens, 0 rounds");
}

}  // namespace
}  // namespace nsp
