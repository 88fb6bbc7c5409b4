// The three public traces on 64 ranks: feasible, checked, in milliseconds.
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "nsp/cost/make_profile.h"
#include "nsp/plan/check.h"
#include "nsp/planner/planner.h"
#include "nsp/workload/trace.h"

namespace nsp {
namespace {

std::string trace_path(const std::string& name) {
  for (const char* suffix : {".txt", ".txt.gz"}) {
    const std::string path = std::string(NSP_SOURCE_DIR) + "/tests/data/traces/" + name + suffix;
    if (std::filesystem::exists(path)) {
      return path;
    }
  }
  return "";
}

class Traces : public testing::TestWithParam<const char*> {};

TEST_P(Traces, FirstBatchIsPlanned) {
  const std::string path = trace_path(GetParam());
  ASSERT_NE(path, "") << "no trace file for " << GetParam();
  const auto batches = full_batches(load_lengths(path), 393216, 2097152);
  ASSERT_FALSE(batches.empty());
  for (const char* model : {"qwen3-30b-a3b", "qwen3-235b-a22b"}) {
    const ModelShape shape = find_model(model);
    const Profile profile = find_profile(shape, "h200");
    for (const char* planner : {"static", "algorithm1"}) {
      const PlanRequest request{
          .lengths = batches[0], .world = 64, .sp_max = 32, .planner = planner};
      const PlanResult result = plan(request, shape, profile);
      const Plan& found = result.plan;
      EXPECT_TRUE(found.feasible);
      EXPECT_EQ(find_violations(found), std::vector<std::string>{});
      const double load = found.predicted.forward + found.predicted.backward;
      EXPECT_LE(found.bound_seconds, load);
      std::printf(
          "%s %s %s: %zu sequences, %zu rounds, %.1f ms, load %.2f ms, gap %.1f %%, step %.2f s\n",
          GetParam(),
          model,
          planner,
          batches[0].size(),
          found.rounds.size(),
          found.planning_ms,
          load * 1e3,
          100 * (load / found.bound_seconds - 1),
          found.predicted.seconds);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Traces,
                         testing::Values("flexsp_common_crawl_head",
                                         "flexsp_github_head",
                                         "flexsp_wikipedia"));

}  // namespace
}  // namespace nsp
