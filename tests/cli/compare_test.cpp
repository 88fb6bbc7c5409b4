#include "call.h"
#include "nsp/cli/comparison.h"
#include "tiny_runs.h"

namespace nsp {
namespace {

constexpr const char* kLengths = "700\n300\n40\n5\n1\n200\n900\n80\n60\n300\n20\n500\n400\n";

Arguments compare_call(const Arguments& more) {
  return tiny4("compare", kLengths, with({"--batch-tokens", "1000"}, more));
}

Outcome compare(const Arguments& more) {
  return call(compare_call(more));
}

TEST(CompareCommand, EveryPlannerHasARow) {
  const Outcome outcome = compare({"--batches", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"\nnsp ", "\nstatic ", "\nalgorithm1 ", "\nnsp-2l ", "\nmegatron-dcp ", "vs static"}) {
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

TEST(CompareCommand, NspHasTheBackendsOfItsRivals) {
  expect_contains(compare({}).out, "nsp with backends ulysses, usp-ring\n");
  expect_contains(compare({"--planners", "nsp,static-usp:2"}).out, "ulysses, usp-ring\n");
  expect_contains(compare({"--planners", "nsp,static"}).out, "nsp with backends ulysses\n");
  expect_contains(compare({"--backends", "ring"}).out, "nsp with backends ring\n");
  EXPECT_EQ(compare({"--planners", "static"}).out.find("nsp with"), std::string::npos);
}

TEST(CompareCommand, APlannerThatRefusesAloneIsAFootnote) {
  const Outcome outcome = compare({"--planners", "nsp,static:3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "static:3: no plan for");
  EXPECT_EQ(compare({"--planners", "static:3,nsp"}).code, 0);
  expect_bad_input(compare_call({"--planners", "static:3"}), "the degree must be one of 1, 2, 4");
}

TEST(CompareCommand, ATypoStopsItWhereverItStands) {
  expect_bad_input(compare_call({"--planners", "static,nsp", "--backends", "nope"}), "'nope'");
  expect_bad_input(compare_call({"--planners", "static,nsp:2"}), "'nsp:2'");
  expect_bad_input(compare_call({"--planners", "nsp,static:"}), "'static:'");
  expect_bad_input(compare_call({"--planners", "nsp,static:two"}), "'static:two'");
  expect_bad_input(compare_call({"--planners", "static", "--backends", "ring"}),
                   "--backends ring: is for planner nsp");
}

// A path need not be UTF-8.
TEST(CompareCommand, JsonNamesAnyFile) {
  const std::string path = temporary_path("\xff.txt");
  write_file(path, kLengths);
  Arguments arguments = compare_call({"--planners", "static", "--json", "-"});
  arguments[2] = path;
  const Outcome outcome = call(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(parse_json(outcome.out, "output")["settings"]["lengths"], "\xEF\xBF\xBD.txt");
}

TEST(CompareCommand, NoPlanOfAnyPlannerIsAnAnswer) {
  const Outcome outcome = compare({"--planners", "nsp,static", "--token-budget", "10"});
  EXPECT_EQ(outcome.code, 1);
  expect_contains(outcome.out, "means over 0 of 4 batches");
  expect_contains(outcome.err, "no plan fits: sequence 0, the longest, has 700 tokens");
}

TEST(CompareCommand, BadInputIsOneSentence) {
  expect_bad_input(
      tiny("compare", kLengths, {"--world", "4", "--sp-max", "3", "--batch-tokens", "1000"}),
      "sp_max 3");
  expect_bad_input(compare_call({"--planners", "magic"}), "'magic'");
  expect_bad_input(compare_call({"--batches", "0"}), "--batches 0");
  expect_bad_input(compare_call({"--max-length", "-1"}), "max_length -1");
  expect_bad_input(compare_call({"--backends", "rings"}), "backends 'rings'");
  expect_bad_input(compare_call({"--ep", "3"}), "ep 3");
  expect_bad_input(compare_call({"--checkpoint", "some"}), "checkpoint 'some'");
  expect_bad_input(tiny4("compare", kLengths, {"--batch-tokens", "100000"}),
                   "does not fill one batch");
}

// By hand: nsp loses batch 1 by a tenth, where static's backends have the lower bound; static has
// no plan for batch 2, which no mean then counts.
TEST(Comparison, CountsWinsAndLosses) {
  const std::vector<PlannerRow> rows = {
      {.planner = "nsp",
       .batches =
           {PlannedBatch{
                .step_seconds = 1.0, .load_seconds = 1.02, .bound_seconds = 1, .planning_ms = 5},
            PlannedBatch{
                .step_seconds = 1.1, .load_seconds = 2.08, .bound_seconds = 3, .planning_ms = 7},
            PlannedBatch{.step_seconds = 9.0}}},
      {.planner = "static",
       .batches = {PlannedBatch{.step_seconds = 2.0},
                   PlannedBatch{.step_seconds = 1.0, .load_seconds = 2.5, .bound_seconds = 2},
                   {}},
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

// Batch 0 is nsp's alone, batch 1 static's: nothing to take a mean of.
TEST(Comparison, WithoutASharedBatchThereAreNoMeans) {
  const std::vector<PlannerRow> rows = {
      {.planner = "nsp", .batches = {PlannedBatch{.step_seconds = 1.0, .planning_ms = 5}, {}}},
      {.planner = "static", .batches = {{}, PlannedBatch{.step_seconds = 2.0}}}};
  const std::string table = comparison_table(rows);
  expect_contains(table, "-          -        -          5.0");
  expect_contains(table, "means over 0 of 2 batches");
  const Json json = comparison_json(rows);
  EXPECT_FALSE(json["planners"][0].contains("step_seconds"));
  EXPECT_EQ(json["planners"][0]["planning_ms"], 5.0);
}

}  // namespace
}  // namespace nsp
