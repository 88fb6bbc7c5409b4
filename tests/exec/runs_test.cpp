#include "nsp/exec/runs.h"

#include <vector>

#include <gtest/gtest.h>

#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

using List = std::vector<Run>;

List runs(std::int32_t degree, std::vector<Placement> placements) {
  const Round round =
      make_plan({.world = degree, .sp_max = degree}, {std::move(placements)}).rounds.front();
  return runs_of(make_blocks(round, 0, {head_split(degree)}).front());
}

TEST(Runs, OneSequenceIsARunASource) {
  EXPECT_EQ(runs(2, {place(0, 8, {0, 2})}),
            (List{{.source = 0, .row = 0, .to = 0, .rows = 4},
                  {.source = 1, .row = 0, .to = 4, .rows = 4}}));
}

// Sequence 1 (3 tokens: 2 and 1), then sequence 0 (2 tokens: 1 and 1).
TEST(Runs, EverySequenceAddsARunASource) {
  EXPECT_EQ(runs(2, {place(0, 2, {0, 2}), place(1, 3, {0, 2})}),
            (List{{.source = 0, .row = 0, .to = 0, .rows = 2},
                  {.source = 1, .row = 0, .to = 2, .rows = 1},
                  {.source = 0, .row = 2, .to = 3, .rows = 1},
                  {.source = 1, .row = 1, .to = 4, .rows = 1}}));
}

TEST(Runs, ALevelWithoutSequencesHasNone) {
  EXPECT_TRUE(runs(2, {}).empty());
}

}  // namespace
}  // namespace nsp
