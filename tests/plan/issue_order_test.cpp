#include "nsp/plan/issue_order.h"

#include <gtest/gtest.h>

#include "random_plan.h"

namespace nsp {
namespace {

Round nested_round() {
  return make_plan(
             {.world = 4, .sp_max = 4, .ranks_per_host = 4},
             {{place(0, 8, {0, 4}), place(1, 4, {2, 2}), place(2, 4, {0, 2}), place(3, 1, {1, 1})}})
      .rounds[0];
}

TEST(IssueOrder, NamesTheDegreesRootToLeaf) {
  EXPECT_EQ(exchanged_degrees(nested_round()), (std::vector<std::int32_t>{4, 2}));
  EXPECT_TRUE(exchanged_degrees(Round{}).empty());
}

TEST(IssueOrder, DefaultSendsFirstAndHidesBehindLeaves) {
  const std::vector<Issue> expected = {{Phase::kPrologue, 4},
                                       {Phase::kPrologue, 2},
                                       {Phase::kCompute, 1},
                                       {Phase::kCompute, 4},
                                       {Phase::kEpilogue, 4},
                                       {Phase::kCompute, 2},
                                       {Phase::kEpilogue, 2}};
  EXPECT_EQ(default_order(nested_round()), expected);
  EXPECT_EQ(default_order(Round{}), (std::vector<Issue>{{Phase::kCompute, 1}}));
}

TEST(IssueOrder, FaultsSayWhatIsWrong) {
  const Round round = nested_round();
  std::vector<Issue> order = default_order(round);
  order.pop_back();
  EXPECT_EQ(find_order_fault(round, order), "epilogue:2 is never issued");
  order = default_order(round);
  std::swap(order[0], order[3]);
  EXPECT_EQ(find_order_fault(round, order), "compute:4 is issued where prologue:4 is due");
  order = default_order(round);
  order.push_back({Phase::kEpilogue, 2});
  EXPECT_EQ(find_order_fault(round, order), "epilogue:2 is issued after the level is done");
  order.back() = {Phase::kPrologue, 8};
  EXPECT_EQ(find_order_fault(round, order), "prologue:8 is issued, but no placement has degree 8");
  order = default_order(round);
  order[2] = {Phase::kPrologue, 1};
  EXPECT_EQ(find_order_fault(round, order), "prologue:1 is issued where compute:1 is due");
}

TEST(IssueOrder, DefaultIsSoundForEveryRound) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Round& round : random_plan(seed).rounds) {
      EXPECT_EQ(find_order_fault(round, default_order(round)), "") << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nsp
