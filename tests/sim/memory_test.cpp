#include "nsp/sim/memory.h"

#include <gtest/gtest.h>

#include "nsp/plan/make_plan.h"
#include "tests/cost/simple_profile.h"

namespace nsp {
namespace {

std::int64_t bytes(Mark mark, Checkpointing checkpointing) {
  Plan plan = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {{place(0, 100, {0, 1})}});
  plan.rounds[0].placements[0].mark = mark;
  return memory_bytes(plan, simple_model(), checkpointing)[0];
}

// A token of simple_model: dense 8 x 4 + 4 x 4 + 2 x 4 + 4 x 4 = 72 bytes a layer, ten layers;
// workspace 12 x 4; with checkpointing the input, 4 bytes, and one whole layer; saved: output 4 and
// log-sum-exp 16; q, k, v 8.
TEST(Memory, FollowsTheFormula) {
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kNone), 100 * (10 * 72 + 48));
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kFull), 100 * (10 * 4 + 72 + 48));
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kMarks), 100 * (10 * 4 + 72 + 48));
  EXPECT_EQ(bytes(Mark::kSave, Checkpointing::kMarks), 100 * (10 * (4 + 20) + 72 + 48));
  EXPECT_EQ(bytes(Mark::kSaveQkv, Checkpointing::kMarks), 100 * (10 * (4 + 28) + 72 + 48));
}

TEST(Memory, TheFullestRoundCounts) {
  const PlanSettings settings{.world = 2, .sp_max = 2, .ranks_per_host = 2};
  const Plan one = make_plan(settings, {{place(0, 100, {0, 2})}});
  const Plan two = make_plan(settings, {{place(0, 100, {0, 2})}, {place(1, 50, {1, 1})}});
  const ModelShape shape = simple_model();
  EXPECT_EQ(memory_bytes(one, shape, Checkpointing::kNone),
            memory_bytes(two, shape, Checkpointing::kNone));
}

// What two Qwen3 layers were measured to keep, KB a token.
TEST(Memory, DensePartIsNearMeasurements) {
  const PlanSettings settings{.world = 1, .sp_max = 1, .ranks_per_host = 1};
  const Plan plan = make_plan(settings, {{place(0, 1000, {0, 1})}});
  for (const auto& [model, kept] :
       {std::pair{"qwen3-30b-a3b", 181.0}, {"qwen3-235b-a22b", 361.0}}) {
    ModelShape shape = find_model(model);
    shape.layers = 2;
    const std::int64_t two = memory_bytes(plan, shape, Checkpointing::kNone)[0];
    shape.layers = 1;
    const std::int64_t one = memory_bytes(plan, shape, Checkpointing::kNone)[0];
    EXPECT_NEAR(static_cast<double>(two - one) / 1e6, kept, 2);
  }
}

}  // namespace
}  // namespace nsp
