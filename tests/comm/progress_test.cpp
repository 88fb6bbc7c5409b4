#include "nsp/comm/progress.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace nsp {
namespace {

TEST(Progress, SaysWhereARankIs) {
  Progress progress;
  EXPECT_EQ(describe(progress.place()), "start-up, outside attention");
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

TEST(Progress, CountsEveryStageWaitAndStep) {
  Progress progress;
  std::uint64_t before = progress.changes();
  const auto expect_change = [&] {
    EXPECT_NE(progress.changes(), before);
    before = progress.changes();
  };
  for (const std::int64_t step : {0, 1, 1}) {  // the last is another epoch's
    progress.begin_step(step);
    expect_change();
    Progress::Pass pass(progress, 0, false);
    for (const Stage stage : {Stage::kPrologue, Stage::kCompute}) {
      pass.enter(stage, 2);
      expect_change();
      const Progress::Waiting waiting(progress);
      expect_change();
    }
  }
  expect_change();  // the pass has ended
}

TEST(Progress, RemembersThatAPassFailed) {
  Progress progress;
  const auto fail = [&] {
    Progress::Pass pass(progress, 0, false);
    pass.enter(Stage::kCompute, 4);
    throw std::runtime_error("boom");
  };
  EXPECT_THROW(fail(), std::runtime_error);
  EXPECT_TRUE(progress.place().failed);
  EXPECT_FALSE(progress.place().inside);
  EXPECT_EQ(describe(progress.place()),
            "start-up, round 0, attention call 1, forward compute of level 4");
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
