#include "nsp/comm/progress.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace nsp {
namespace {

TEST(Progress, SaysWhereARankIs) {
  Progress progress;
  EXPECT_EQ(describe(progress.place()), "before the first step, outside attention");
  progress.begin_step(12);
  EXPECT_EQ(describe(progress.place()), "step 12, outside attention");
  {
    const Progress::Pass first(progress, 0, false);
  }
  {
    Progress::Pass pass(progress, 3, true);
    pass.enter(Stage::kEpilogue, 8);
    EXPECT_EQ(describe(progress.place()),
              "step 12, round 3, attention call 2, backward epilogue of level 8");
    EXPECT_FALSE(progress.place().waiting);
    const Progress::Waiting waiting(progress);
    EXPECT_TRUE(progress.place().waiting);
  }
  EXPECT_EQ(describe(progress.place()),
            "step 12, outside attention (last: round 3, attention call 2, backward epilogue of "
            "level 8)");
  EXPECT_FALSE(progress.place().waiting);
}

TEST(Progress, EveryStageChangesTheWord) {
  Progress progress;
  progress.begin_step(0);
  std::uint64_t before = progress.word();
  for (int call = 0; call < 3; ++call) {
    Progress::Pass pass(progress, 0, false);
    for (const Stage stage : {Stage::kPrologue, Stage::kCompute}) {
      pass.enter(stage, 2);
      EXPECT_NE(progress.word(), before);
      before = progress.word();
    }
  }
}

TEST(Progress, RemembersThatAPassFailed) {
  Progress progress;
  try {
    Progress::Pass pass(progress, 0, false);
    pass.enter(Stage::kCompute, 4);
    throw std::runtime_error("boom");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(progress.place().failed);
  EXPECT_FALSE(progress.place().inside);
  EXPECT_EQ(describe(progress.place()),
            "before the first step, round 0, attention call 1, forward compute of level 4");
  progress.begin_step(1);
  EXPECT_FALSE(progress.place().failed);
}

TEST(Progress, APlaceSurvivesItsText) {
  const Place place{.step = 5,
                    .round = 2,
                    .call = 70000,
                    .degree = 1024,
                    .stage = Stage::kFinish,
                    .backward = true,
                    .inside = true,
                    .waiting = true};
  EXPECT_EQ(decode_place(encode(place)), place);
  EXPECT_EQ(decode_place("nonsense"), Place{});
}

}  // namespace
}  // namespace nsp
