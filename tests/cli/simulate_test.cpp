#include "call.h"
#include "nsp/base/json.h"
#include "nsp/cli/comparison.h"
#include "tests/temporary.h"

namespace nsp {
namespace {

std::string lengths_file() {
  const std::string path = temporary_path("lengths.txt");
  write_file(path, "700\n300\n40\n5\n1\n200\n900\n80\n60\n300\n20\n500\n400\n");
  return path;
}

std::string plan_file() {
  const std::string path = temporary_path("plan.json");
  const Outcome outcome = call({"plan",
                                "--lengths",
                                lengths_file(),
                                "--model",
                                "tiny",
                                "--profile",
                                "cpu-gloo",
                                "--world",
                                "4",
                                "--sp-max",
                                "4",
                                "--json",
                                path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return path;
}

TEST(SimulateCommand, ShowsWhereTheStepGoes) {
  const Outcome outcome = call({"simulate", plan_file(), "--profile", "cpu-gloo"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"4 ranks", "step", "attention forward", "exposed SP", "waiting", "GiB"}) {
    expect_contains(outcome.out, part);
  }
}

TEST(SimulateCommand, JsonAndTrace) {
  const std::string trace = temporary_path("trace.json");
  const Outcome outcome = call({"simulate",
                                plan_file(),
                                "--profile",
                                "cpu-gloo",
                                "--checkpoint",
                                "full",
                                "--serial",
                                "--trace",
                                trace,
                                "--json",
                                "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(outcome.out, "output");
  EXPECT_GT(json["step_seconds"].get<double>(), 0);
  EXPECT_GT(json["mean"]["recompute"].get<double>(), 0);
  EXPECT_EQ(json["settings"]["overlap"], false);
  EXPECT_FALSE(load_json(trace)["traceEvents"].empty());
}

TEST(SimulateCommand, AnotherProfileIsANoteAndAnotherModelIsRefused) {
  const std::string plan = plan_file();
  const Outcome other = call({"simulate", plan, "--profile", "h200"});
  EXPECT_EQ(other.code, 0);
  expect_contains(other.err, "note: profile h200 is not the one");
  expect_bad_input({"simulate", plan, "--model", "llama3-8b"}, "is not the model");
  expect_bad_input({"simulate", plan, "--profile", "cpu-gloo", "--checkpoint", "some"},
                   "must be none, full or marks");
  expect_bad_input({"simulate", plan, "--profile", "cpu-gloo", "--ep", "3"},
                   "must divide the world of 4");
}

Outcome compare(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"compare",
                                        "--lengths",
                                        lengths_file(),
                                        "--model",
                                        "tiny",
                                        "--profile",
                                        "cpu-gloo",
                                        "--world",
                                        "4",
                                        "--sp-max",
                                        "4",
                                        "--batch-tokens",
                                        "1000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return call(arguments);
}

TEST(CompareCommand, EveryPlannerHasARow) {
  const Outcome outcome = compare({"--batches", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"nsp", "static", "algorithm1", "nsp-2l", "megatron-dcp", "vs static"}) {
    expect_contains(outcome.out, part);
  }
}

TEST(CompareCommand, JsonHoldsEveryBatch) {
  const Outcome outcome = compare({"--planners", "nsp,static", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(outcome.out, "output");
  ASSERT_EQ(json["planners"].size(), 2U);
  EXPECT_EQ(json["planners"][0]["planner"], "nsp");
  EXPECT_EQ(json["planners"][0]["batches"].size(), json["planners"][1]["batches"].size());
  EXPECT_GT(json["planners"][0]["over_static"].get<double>(), 0);
}

TEST(CompareCommand, APlannerThatRefusesAloneIsAFootnote) {
  const Outcome outcome = compare({"--planners", "nsp,static:3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "static:3: no plan for");
}

TEST(CompareCommand, BadInputIsOneSentence) {
  expect_bad_input({"compare",
                    "--lengths",
                    lengths_file(),
                    "--model",
                    "tiny",
                    "--world",
                    "4",
                    "--sp-max",
                    "3",
                    "--batch-tokens",
                    "1000"},
                   "sp_max 3");
  expect_bad_input({"compare",
                    "--lengths",
                    lengths_file(),
                    "--model",
                    "tiny",
                    "--world",
                    "4",
                    "--sp-max",
                    "4",
                    "--batch-tokens",
                    "1000",
                    "--planners",
                    "magic"},
                   "'magic'");
  expect_bad_input({"compare",
                    "--lengths",
                    lengths_file(),
                    "--model",
                    "tiny",
                    "--world",
                    "4",
                    "--sp-max",
                    "4",
                    "--batch-tokens",
                    "100000"},
                   "does not fill one batch");
}

// By hand: nsp loses batch 1 by a tenth, static has no plan for batch 2, which no mean then counts.
TEST(Comparison, CountsWinsAndLosses) {
  const std::vector<PlannerRow> rows = {
      {.planner = "nsp",
       .batches = {PlannedBatch{.step_seconds = 1.0, .gap = 0.02, .planning_ms = 5, .rounds = 1},
                   PlannedBatch{.step_seconds = 1.1, .gap = 0.04, .planning_ms = 7, .rounds = 1},
                   PlannedBatch{.step_seconds = 9.0}}},
      {.planner = "static",
       .batches = {PlannedBatch{.step_seconds = 2.0}, PlannedBatch{.step_seconds = 1.0}, {}},
       .why_none = "too long"}};
  const std::string table = comparison_table(rows);
  for (const char* part : {"1.0500     1.429x    3.00%",
                           "1.5000     1.000x",
                           "1 / 1",
                           "batch 1: static is 10.00% faster than nsp (1.0000 s, nsp 1.1000 s)",
                           "static: no plan for 1 of 3 batches: too long"}) {
    expect_contains(table, part);
  }
  const Json json = comparison_json(rows);
  EXPECT_EQ(json["planners"][1]["faster_than_nsp"], Json::array({1}));
  EXPECT_EQ(json["shared_batches"], Json::array({0, 1}));
}

}  // namespace
}  // namespace nsp
