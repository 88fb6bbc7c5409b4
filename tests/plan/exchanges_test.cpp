#include "nsp/plan/exchanges.h"

#include <gtest/gtest.h>

#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

TEST(PlanExchanges, FollowFromTheWay) {
  EXPECT_EQ(exchanges_of(head_split(1)), (ExchangeCount{0, 0}));
  EXPECT_EQ(exchanges_of(head_split(8)), (ExchangeCount{2, 2}));
  EXPECT_EQ(exchanges_of({8, Backend::kGather, 1}), (ExchangeCount{1, 2}));
  EXPECT_EQ(exchanges_of({8, Backend::kRing, 1}), (ExchangeCount{7, 14}));
  EXPECT_EQ(exchanges_of({8, Backend::kUspRing, 2}), (ExchangeCount{2 + 3, 2 + 6}));
  EXPECT_EQ(exchanges_of({8, Backend::kUspGather, 2}), (ExchangeCount{2 + 1, 2 + 2}));
}

TEST(PlanExchanges, SharedHeadsArePassedOnInsideTheHost) {
  EXPECT_EQ(exchanges_of({8, Backend::kUspRing, 4}, 2), (ExchangeCount{2 + 2, 2 + 4}));
  EXPECT_EQ(exchanges_of({8, Backend::kUspGather, 4}, 4), (ExchangeCount{2 + 2, 2 + 4}));
}

// Of 2r pieces index i owns i and 2r - 1 - i: an upper piece is sent exactly where it stands before
// the receiver's own upper piece.
TEST(PlanExchanges, PiecesGoWhereALaterOneIsOwned) {
  constexpr std::int32_t kRing = 5;
  for (std::int32_t to = 0; to < kRing; ++to) {
    for (std::int32_t from = 0; from < kRing; ++from) {
      EXPECT_EQ(needs_upper(to, from), 2 * kRing - 1 - from < 2 * kRing - 1 - to);
      EXPECT_LT(from, 2 * kRing - 1 - to);  // the lower one is always seen
    }
  }
}

TEST(PlanExchanges, WaysStandRootToLeafThenByBackend) {
  const Plan plan = make_plan({.world = 4, .sp_max = 4},
                              {{place(0, 9, {0, 2}),
                                place(1, 9, 0, {4, Backend::kRing, 1}),
                                place(2, 9, {1, 1}),
                                place(3, 9, 2, {2, Backend::kGather, 1}),
                                place(4, 9, 0, {4, Backend::kGather, 1}),
                                place(5, 9, {2, 2})}});
  const std::vector<Way> expected = {{4, Backend::kGather, 1},
                                     {4, Backend::kRing, 1},
                                     {2, Backend::kUlysses, 2},
                                     {2, Backend::kGather, 1}};
  EXPECT_EQ(exchanged_ways(plan.rounds[0]), expected);
}

}  // namespace
}  // namespace nsp
