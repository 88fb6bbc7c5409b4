#include "nsp/sim/memory.h"

#include <gtest/gtest.h>

#include "nsp/plan/make_plan.h"
#include "nsp/sim/row_bytes.h"
#include "tests/cost/simple_profile.h"

namespace nsp {
namespace {

std::int64_t bytes(Mark mark, Checkpointing checkpointing) {
  Plan plan = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2}, {{place(0, 100, {0, 1})}});
  plan.rounds[0].placements[0].mark = mark;
  return memory_bytes(plan, simple_model(), checkpointing)[0];
}

// A row of simple_model, bytes: norm 4 x 4 + 4 + 2 x 4 = 28; output 4 and log-sum-exp 16; MLP 4
// x 4. Kept: 28 + 20 + 28 + 16 = 92, and q, k, v: 8. Around attention: first norm, output and its
// log-sum-exp, q, k, v are there, 56; the gradients of the layer, the output, q, k, v: 16; and the
// workspace, 12 x 4: 120, more than at the end of the layer (100 + 4 + 2 x 4). With checkpointing
// the input, 4; saved: 20, and q, k, v; offloaded: the log-sum-exp, and one layer's output.
TEST(Memory, FollowsTheFormula) {
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kNone), 100 * (9 * 100 + 120));
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kFull), 100 * (10 * 4 + 120));
  EXPECT_EQ(bytes(Mark::kSave, Checkpointing::kFull), 100 * (10 * 4 + 120));
  EXPECT_EQ(bytes(Mark::kRecompute, Checkpointing::kMarks), 100 * (10 * 4 + 120));
  EXPECT_EQ(bytes(Mark::kSave, Checkpointing::kMarks), 100 * (10 * (4 + 20) + 120));
  EXPECT_EQ(bytes(Mark::kSaveQkv, Checkpointing::kMarks), 100 * (10 * (4 + 28) + 120));
  EXPECT_EQ(bytes(Mark::kOffload, Checkpointing::kFull), 100 * (10 * 4 + 120));
  EXPECT_EQ(bytes(Mark::kOffload, Checkpointing::kMarks), 100 * (10 * (4 + 16) + 4 + 120));
}

TEST(Memory, TheFullestRoundCounts) {
  const PlanSettings settings{.world = 2, .sp_max = 2, .ranks_per_host = 2};
  const Plan one = make_plan(settings, {{place(0, 100, {0, 2})}});
  const Plan two = make_plan(settings, {{place(0, 100, {0, 2})}, {place(1, 50, {1, 1})}});
  const ModelShape shape = simple_model();
  EXPECT_EQ(memory_bytes(one, shape, Checkpointing::kNone),
            memory_bytes(two, shape, Checkpointing::kNone));
}

// What two Qwen3 layers kept on an H200, bytes a token, their output and a mask of a byte a chosen
// expert (which later versions do without) not counted; and the first one's peak in backward, its
// weights and their gradients not counted.
TEST(Memory, ALayerIsAsMeasured) {
  const ModelShape small = find_model("qwen3-30b-a3b");
  const RowBytes row = row_bytes(small, true);
  EXPECT_EQ(row.kept + row.read, 198'740 - 4'096 - 8);
  EXPECT_NEAR(static_cast<double>(row.kept + row.read + row.first), 9'731'966'976.0 / 32'768, 100);
  const RowBytes large = row_bytes(find_model("qwen3-235b-a22b"), true);
  EXPECT_EQ(large.kept + large.read, 391'508 - 8'192 - 8);
}

}  // namespace
}  // namespace nsp
