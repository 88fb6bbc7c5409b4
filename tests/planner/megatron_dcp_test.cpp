#include "nsp/planner/baselines/megatron_dcp.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/json.h"
#include "nsp/planner/baselines/megatron_schedule.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

struct Sorted {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> lengths;
};

Sorted longest_first(const std::vector<std::int64_t>& lengths) {
  Sorted sorted{.ids = std::vector<std::int64_t>(lengths.size()), .lengths = {}};
  std::iota(sorted.ids.begin(), sorted.ids.end(), 0);
  const auto length = [&](std::int64_t id) { return -lengths[static_cast<std::size_t>(id)]; };
  std::ranges::stable_sort(sorted.ids, {}, length);
  for (const std::int64_t id : sorted.ids) {
    sorted.lengths.push_back(-length(id));
  }
  return sorted;
}

// The case's own form: the ids on each rank, in order of placement.
Json ranks_of(const MegatronBatch& batch, const Sorted& sorted, std::int32_t world) {
  Json ranks = std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(world));
  for (const MegatronGroup& group : batch) {
    for (std::int32_t i = 0; i < group.size; ++i) {
      for (const std::size_t member : group.members) {
        ranks[static_cast<std::size_t>(group.first_rank + i)].push_back(sorted.ids[member]);
      }
    }
  }
  return ranks;
}

TEST(MegatronDcp, ReproducesTheRecordedCases) {
  const Json file = load_json(std::string(NSP_SOURCE_DIR) +
                              "/tests/data/baselines/megatron_dynamic_cp_cases.json");
  ASSERT_EQ(file["cases"].size(), 3U);
  for (const Json& one : file["cases"]) {
    const Sorted sorted = longest_first(one["lengths"]);
    const std::int32_t world = one["ranks"];
    const auto batches = megatron_schedule(sorted.lengths,
                                           {.world = world,
                                            .largest = world,
                                            .tokens = one["max_tokens_per_rank"],
                                            .whole_slices = false,
                                            .smallest = one["min_cp_size"]});
    ASSERT_EQ(batches.size(), one["micro_batches"].size()) << one["name"];
    for (std::size_t b = 0; b < batches.size(); ++b) {
      EXPECT_EQ(ranks_of(batches[b], sorted, world), one["micro_batches"][b]["ranks"])
          << one["name"] << " micro-batch " << b;
      for (const Json& pair : one["micro_batches"][b]["group_size"]) {
        std::int64_t size = 0;
        for (const MegatronGroup& group : batches[b]) {
          for (const std::size_t member : group.members) {
            size = sorted.ids[member] == pair[0] ? group.size : size;
          }
        }
        EXPECT_EQ(size, pair[1]) << one["name"] << " sequence " << pair[0];
      }
    }
  }
}

TEST(MegatronDcp, PlacesEverySequenceOnceUnderTheBudget) {
  const CostModel model = tiny_model();
  Random random(41);
  for (int i = 0; i < 60; ++i) {
    const std::int32_t sp_max = 1 << pick(random, 0, 3);
    const std::int32_t world = sp_max * static_cast<std::int32_t>(pick(random, 1, 3));
    const auto lengths = random_lengths(random, pick(random, 1, 60), 11);
    const std::int64_t longest = std::ranges::max(lengths);
    const std::int64_t budget = (longest + sp_max - 1) / sp_max + pick(random, 0, 300);
    const auto rounds = megatron_dcp(problem_of(model, world, sp_max, budget, lengths));
    ASSERT_FALSE(rounds.empty()) << "case " << i;
    EXPECT_TRUE(all_feasible(rounds)) << "case " << i;
    std::vector<int> seen(lengths.size(), 0);
    for (const Solution& round : rounds) {
      for (const Placement& placement : round.placements) {
        ++seen[static_cast<std::size_t>(placement.sequence)];
        EXPECT_TRUE(is_node(placement.node, world, sp_max));
      }
    }
    EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen)) << "case " << i;
  }
}

TEST(MegatronDcp, ALimitOnlyLeavesOutWorsePlans) {
  const CostModel model = large_model();
  Random random(43);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = problem_of(model, 8, 8, 30000, random_lengths(random, 80, 16));
    const std::int64_t load = total_load(megatron_dcp(problem));
    EXPECT_EQ(total_load(megatron_dcp(problem, load)), load) << "case " << i;
    EXPECT_TRUE(megatron_dcp(problem, load - 1).empty()) << "case " << i;
  }
}

TEST(MegatronDcp, ASequenceThatNeedsALargerGroupHasNoPlan) {
  EXPECT_TRUE(megatron_schedule({500}, {.world = 4, .largest = 4, .tokens = 100}).empty());
}

}  // namespace
}  // namespace nsp
