#include "nsp/planner/baselines/flexsp/regroup.h"

#include <gtest/gtest.h>

#include "../cases.h"
#include "cover.h"

namespace nsp {
namespace {

Grouping start_of(CostTable& costs, Assignment& state, std::int32_t degree) {
  Grouping start = one_degree(costs.problem(), degree);
  state.assign(start.placed);
  start.quality = quality(state);
  return start;
}

void expect_covered(const Grouping& grouping, std::int32_t world, std::int32_t sp_max) {
  expect_cover(grouping.groups, world, sp_max);
  for (const Node& node : grouping.placed) {
    EXPECT_NE(std::ranges::find(grouping.groups, node), grouping.groups.end());
  }
}

TEST(Regroup, GroupsCoverTheRanksAndNothingGetsWorse) {
  const CostModel model = large_model();
  Random random(59);
  for (int i = 0; i < 10; ++i) {
    const Problem problem = problem_of(model, 24, 8, 60000, random_lengths(random, 40, 17));
    CostTable costs(problem);
    Assignment state(costs);
    const Grouping start = start_of(costs, state, 1 << pick(random, 0, 3));
    const Grouping same = improved(state, start, 5000);
    EXPECT_LE(same.quality, start.quality) << "case " << i;
    EXPECT_EQ(same.groups, start.groups) << "case " << i;
    const Grouping other = regroup(state, same, 3, 5000);
    EXPECT_LE(other.quality, same.quality) << "case " << i;
    expect_covered(other, 24, 8);
  }
}

// Four equal sequences on 4 leaves beat one group of 4, two steps of halving away.
TEST(Regroup, FindsLeavesForEqualShortSequences) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 4, 1000, {500, 500, 500, 500});
  CostTable costs(problem);
  Assignment state(costs);
  const Grouping found = regroup(state, start_of(costs, state, 4), 10, 2000);
  EXPECT_EQ(found.groups, level(4, 1));
  EXPECT_LT(found.quality, start_of(costs, state, 4).quality);
}

}  // namespace
}  // namespace nsp
