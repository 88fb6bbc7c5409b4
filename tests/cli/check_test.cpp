#include "call.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"
#include "tiny_runs.h"

namespace nsp {
namespace {

Json example() {
  return to_json(make_plan({.world = 4, .sp_max = 4, .ranks_per_host = 4, .token_budget = 7},
                           {{place(0, 8, {0, 4}), place(1, 6, {2, 2}), place(2, 5, {0, 1})}}));
}

std::string plan_file(const Json& json) {
  return file_with(json.dump());
}

void expect_violation(const Json& json, const std::string& reason) {
  const Outcome outcome = call({"check", plan_file(json)});
  EXPECT_EQ(outcome.code, 1);
  expect_contains(outcome.out, reason);
}

TEST(CheckCommand, ASoundPlanExitsWithZero) {
  const Outcome outcome = call({"check", plan_file(example())});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "sound: 3 sequences, 19 tokens");
}

TEST(CheckCommand, HandMadeFaultsExitWithOneAndTheReason) {
  Json json = example();
  json["rounds"][0]["placements"].push_back(json["rounds"][0]["placements"][2]);
  expect_violation(json, "sequence 2 appears 2 times");
  json = example();
  json["rounds"][0]["placements"].erase(1);
  expect_violation(json, "sequence 1 is missing");
  json = example();
  json["rounds"][0]["placements"][1]["first_rank"] = 1;
  expect_violation(json, "(first_rank 1, degree 2) is not an aligned node");
  json = example();
  json["token_budget"] = 6;
  expect_violation(json, "round 0, rank 0: holds 7 tokens, above the token budget of 6");
  json = example();
  json["hash"] = "0123";
  expect_violation(json, "hash 0123: the content has");
  json = example();
  json["ranks_per_host"] = 3;
  expect_violation(json, "ranks_per_host 3: must divide the world of 4 ranks");
}

TEST(CheckCommand, UnknownFieldsAndBrokenJsonAreBadInput) {
  Json json = example();
  json["rounds"][0]["colour"] = 1;
  expect_bad_input({"check", plan_file(json)}, "plan.rounds[0]: unknown field 'colour'");
  expect_bad_input({"check", file_with("{\"format\":")}, "not valid JSON");
  expect_bad_input({"check", "/nonexistent.json"}, "/nonexistent.json: cannot be read");
}

TEST(CheckCommand, GivesViolationsAsJson) {
  Json json = example();
  json["hash"] = "0123";
  const Outcome outcome = call({"check", plan_file(json), "--json", "-"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Json::parse(outcome.out)["sound"], false);
  EXPECT_EQ(Json::parse(outcome.out)["violations"].size(), 1U);
}

TEST(ExplainCommand, SaysWhereEachClassWent) {
  const Outcome outcome = call({"explain", plan_file(example())});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "up to 1K");
  const Json json = Json::parse(call({"explain", plan_file(example()), "--json", "-"}).out);
  EXPECT_EQ(json["classes"].size(), 3U);
  EXPECT_EQ(json["classes"][0]["degree"], 4);
}

TEST(ExplainCommand, SaysWhatIsSavedAtEachLevel) {
  const std::string path = temporary_path("marked.json");
  const Outcome planned = call(tiny4(
      "plan",
      "700\n300\n40\n5\n",
      {"--token-budget", "300", "--byte-budget", "64KiB", "--mark-order", "tree", "--json", path}));
  ASSERT_EQ(planned.code, 0) << planned.err;
  expect_contains(planned.out, "of 65536 bytes a rank and layer");
  const Outcome told = call({"explain", path, "--model", "tiny", "--profile", "cpu-gloo"});
  ASSERT_EQ(told.code, 0) << told.err;
  expect_contains(told.out, "attention output kept for backward");
  const Json json = Json::parse(
      call({"explain", path, "--model", "tiny", "--profile", "cpu-gloo", "--json", "-"}).out);
  EXPECT_EQ(json["saved"][0]["degree"], 4);  // 700 tokens pass the budget of two ranks
  EXPECT_LE(json["saved"][0]["bytes_max"].get<int>(), 65536);
  expect_bad_input({"explain", path, "--model", "llama3-8b"}, "is not the model");
  expect_bad_input({"explain", path, "--model", "tiny", "--profile", "a100"}, "not the plan's");
}

TEST(ExplainCommand, AProfileIsForAModel) {
  expect_bad_input({"explain", plan_file(example()), "--profile", "nofile"},
                   "--profile requires --model");
}

TEST(ExplainCommand, RefusesAnUnsoundPlan) {
  Json json = example();
  json["rounds"][0]["placements"][1]["first_rank"] = 1;
  EXPECT_EQ(call({"explain", plan_file(json)}).code, 1);
}

}  // namespace
}  // namespace nsp
