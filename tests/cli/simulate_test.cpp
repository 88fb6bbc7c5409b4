#include "call.h"
#include "tiny_runs.h"

namespace nsp {
namespace {

std::string plan_file() {
  std::string path = temporary_path("plan.json");
  const Outcome outcome =
      call(tiny4("plan", "700\n300\n40\n5\n1\n200\n900\n80\n60\n", {"--json", path}));
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
                   "must be a power of two that divides the world of 4");
}

}  // namespace
}  // namespace nsp
