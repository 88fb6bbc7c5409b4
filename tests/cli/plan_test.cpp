#include "call.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"
#include "tiny_runs.h"

namespace nsp {
namespace {

Arguments plan_call(const std::string& lengths, const Arguments& more) {
  return tiny("plan", lengths, more);
}

Arguments small(const Arguments& more) {
  return tiny4("plan", "700\n300\n40\n5\n1\n200\n", more);
}

TEST(PlanCommand, TakesBackendsAndExpertGroups) {
  const std::string path = temporary_path("ways.json");
  const Outcome planned = call(small({"--backends", "ulysses,ring", "--ep", "2", "--json", path}));
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(call({"check", path}).code, 0);
  EXPECT_EQ(call(small({"--backends", "rings"})).code, 2);
  const Outcome refused = call(small({"--planner", "algorithm1", "--backends", "ring"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("planner algorithm1 has its own"), std::string::npos) << refused.err;
  EXPECT_EQ(call(small({"--ep", "3"})).code, 2);
}

TEST(PlanCommand, PlansEachShippedTrace) {
  for (const std::string trace :
       {"flexsp_wikipedia.txt.gz", "flexsp_common_crawl_head.txt", "flexsp_github_head.txt"}) {
    const std::string path = temporary_path("file.json");
    const Outcome planned = call({"plan",
                                  "--lengths",
                                  NSP_SOURCE_DIR "/tests/data/traces/" + trace,
                                  "--max-length",
                                  "393216",
                                  "--world",
                                  "64",
                                  "--sp-max",
                                  "32",
                                  "--model",
                                  "qwen3-30b-a3b",
                                  "--batch-tokens",
                                  "2097152",
                                  "--batch",
                                  "0",
                                  "--json",
                                  path});
    ASSERT_EQ(planned.code, 0) << planned.err;
    for (const std::string part :
         {"round", "degree", "load", "bound", "gap", "idle", "planned in", "GiB, "}) {
      expect_contains(planned.out, part);
    }
    EXPECT_EQ(call({"check", path}).code, 0);
    const Plan plan = parse_plan(read_file(path));
    EXPECT_LE(plan.num_tokens, 2097152);
    EXPECT_EQ(plan.ranks_per_host, 8);
  }
}

TEST(PlanCommand, SizesHaveUnitsAndDecimals) {
  const auto saved = [](const std::string& size) {
    return call(small({"--byte-budget", size})).out;
  };
  expect_contains(saved("1.5KiB"), "of 1536 bytes a rank and layer");
  expect_contains(saved("1 kib"), "of 1024 bytes");
  expect_contains(saved("0.25GiB"), "of 268435456 bytes");
  expect_contains(saved("20000"), "of 20000 bytes");
}

TEST(PlanCommand, JsonOnStandardOutputIsThePlanAlone) {
  const Outcome outcome = call(small({"--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Plan plan = parse_plan(outcome.out);
  EXPECT_EQ(find_violations(plan), std::vector<std::string>{});
  EXPECT_EQ(plan.num_sequences, 6);
  EXPECT_EQ(plan.num_tokens, 1246);
}

TEST(PlanCommand, StaticUsesOneDegree) {
  const Outcome outcome =
      call(small({"--planner", "static:2", "--json", "-", "--token-budget", "700"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const Round& round : parse_plan(outcome.out).rounds) {
    for (const Placement& placement : round.placements) {
      EXPECT_EQ(placement.node.degree, 2);
    }
  }
}

TEST(PlanCommand, ASequenceThatNoGroupHoldsIsAnAnswer) {
  const Outcome outcome = call(small({"--token-budget", "150"}));
  EXPECT_EQ(outcome.code, 1);
  expect_contains(outcome.err, "no plan fits");
  expect_contains(outcome.err, "sequence 0");
  expect_contains(outcome.err, "700");
  expect_contains(outcome.err, "600");
}

TEST(PlanCommand, BadInputIsOneSentence) {
  expect_bad_input(plan_call("5\n", {"--world", "4", "--sp-max", "3"}),
                   "sp_max 3: must be a power of two");
  expect_bad_input(plan_call("5\n", {"--world", "6", "--sp-max", "4"}),
                   "sp_max 4: must divide the world");
  expect_bad_input(plan_call("5\n12a\n", {"--world", "4", "--sp-max", "4"}), ":2: length '12a'");
  expect_bad_input(plan_call("-5\n", {"--world", "4", "--sp-max", "4"}), "length '-5'");
  expect_bad_input(plan_call("0\n", {"--world", "4", "--sp-max", "4"}), "length '0'");
  expect_bad_input(plan_call("", {"--world", "4", "--sp-max", "4"}), "is empty");
  expect_bad_input(plan_call(std::string("5\n\0\n", 4), {"--world", "4", "--sp-max", "4"}),
                   "is a binary file");
  expect_bad_input(small({"--planner", "magic"}), "magic");
  expect_bad_input(small({"--effort", "heroic"}), "heroic");
  expect_bad_input(small({"--over-length", "ignore"}), "ignore");
  expect_bad_input(small({"--colour", "red"}), "--colour");
  expect_bad_input(small({"--world", "x"}), "--world");
  expect_bad_input(small({"--token-budget", "-1"}), "token_budget");
  expect_bad_input(small({"--byte-budget", "-1"}), "byte_budget -1");
  expect_bad_input(small({"--byte-budget", "3 apples"}), "byte-budget");
  expect_bad_input(small({"--byte-budget", "1.5"}), "byte-budget");
  expect_bad_input(small({"--byte-budget", "-1GiB"}), "is not a size");
  expect_bad_input(small({"--byte-budget", "99999999999GiB"}), "beyond 2^62");
  expect_bad_input(small({"--byte-budget", "99999999999999999999"}), "beyond 2^62");
  expect_bad_input(small({"--host-budget", "1GiB"}), "add host_bytes_per_second to it, or give 0");
  expect_bad_input(small({"--mark-order", "upwards"}), "upwards");
  expect_bad_input(
      {"plan", "--lengths", file_with("5\n"), "--world", "4", "--sp-max", "4", "--model", "gpt-9"},
      "model 'gpt-9': must be one of");
  expect_bad_input({"plan",
                    "--lengths",
                    file_with("5\n"),
                    "--world",
                    "4",
                    "--sp-max",
                    "4",
                    "--model",
                    "tiny",
                    "--profile",
                    "abacus"},
                   "abacus");
}

TEST(PlanCommand, HeadsThatTheDegreeDoesNotDivideAreRefused) {
  expect_bad_input(plan_call("5\n", {"--world", "16", "--sp-max", "16", "--planner", "static:16"}),
                   "16");
}

TEST(PlanCommand, BatchesAreCountedFromZero) {
  const Outcome second = call(small({"--batch-tokens", "700", "--batch", "0", "--json", "-"}));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(parse_plan(second.out).num_sequences, 1);
  expect_bad_input(small({"--batch-tokens", "700", "--batch", "7"}), "--batch 7:");
  expect_bad_input(small({"--batch", "0"}), "needs --batch-tokens");
  expect_bad_input(small({"--batch-tokens", "600"}), "batch_tokens 600");
  expect_bad_input(plan_call("5\n", {"--world", "4", "--sp-max", "4", "--max-length", "4"}),
                   "--max-length 4");
}

}  // namespace
}  // namespace nsp
