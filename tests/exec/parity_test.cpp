// Every plan gives what one rank over whole sequences gives: float64, out and all gradients.
#include "parity.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include <gtest/gtest.h>

#include "../plan/random_cuts.h"
#include "nsp/base/random.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/wave.h"

namespace nsp::test {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr double kExact = 1e-12;

Plan plan_of(std::int32_t world, std::int32_t sp_max, std::vector<Placement> placements) {
  return make_plan({.world = world, .sp_max = sp_max}, {std::move(placements)});
}

// Every sequence at one degree, dealt round the nodes.
Plan forced(std::int32_t world, std::int32_t degree, const Lengths& lengths) {
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto sequence = static_cast<std::int64_t>(i);
    const auto first = static_cast<std::int32_t>(sequence) * degree % world;
    placements.push_back(place(sequence, lengths[i], {first, degree}));
  }
  return plan_of(world, degree, std::move(placements));
}

// Every sequence on some node of some degree up to sp_max.
Plan mixed(std::int32_t world, std::int32_t sp_max, const Lengths& lengths, std::uint64_t seed) {
  Random random(seed);
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto all = degrees(sp_max);
    const auto degree = all[random.below(all.size())];
    const auto nodes = level(world, degree);
    placements.push_back(
        place(static_cast<std::int64_t>(i), lengths[i], nodes[random.below(nodes.size())]));
  }
  return plan_of(world, sp_max, std::move(placements));
}

// To the last bit: only the way of the rows differs.
void expect_same(const Difference& a, const Difference& b) {
  EXPECT_EQ(a.out, b.out);
  EXPECT_EQ(a.dq, b.dq);
  EXPECT_EQ(a.dk, b.dk);
  EXPECT_EQ(a.dv, b.dv);
  EXPECT_EQ(a.exchanges_forward, b.exchanges_forward);
  EXPECT_EQ(a.exchanges_backward, b.exchanges_backward);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.bits, b.bits);
}

// Parity, and two exchanges each way for every wave of a level, on every rank, whatever it holds.
void expect_exact(const Plan& plan, const RunOptions& options) {
  const Difference difference = run_plan(plan, options);
  EXPECT_LE(difference.out, kExact);
  EXPECT_LE(difference.dq, kExact);
  EXPECT_LE(difference.dk, kExact);
  EXPECT_LE(difference.dv, kExact);
  const auto waves = static_cast<std::int64_t>(exchanged_waves(plan.rounds.front()).size());
  const Lengths wanted(static_cast<std::size_t>(plan.world), 2 * waves);
  EXPECT_EQ(difference.exchanges_forward, wanted);
  EXPECT_EQ(difference.exchanges_backward, wanted);
  const auto reached = [&](std::int32_t reach, std::int64_t fetch_nanoseconds) {
    SCOPED_TRACE(fmt::format("peer copies to degree {}, fetch {} ns", reach, fetch_nanoseconds));
    RunOptions by_peers = options;
    by_peers.reach = reach;
    by_peers.fetch_nanoseconds = fetch_nanoseconds;
    const Difference found = run_plan(plan, by_peers);
    expect_same(found, difference);
    const auto degrees = exchanged_degrees(plan.rounds.front());
    const bool any = std::ranges::any_of(degrees, [&](auto degree) { return degree <= reach; });
    EXPECT_EQ(found.arena_bytes > 0, any);
  };
  if (plan.sp_max > 1) {
    reached(plan.sp_max, 0);    // every run to its place
    reached(2, 1'000'000'000);  // a block a source; levels above 2 by collectives
  }
}

// Under each allowed degree and three mixed plans.
void expect_exact_everywhere(std::int32_t world,
                             std::int32_t sp_max,
                             const Lengths& lengths,
                             const RunOptions& options) {
  for (const std::int32_t degree : degrees(sp_max)) {
    SCOPED_TRACE("degree " + std::to_string(degree));
    expect_exact(forced(world, degree, lengths), options);
  }
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE("mixed plan of seed " + std::to_string(seed));
    expect_exact(mixed(world, sp_max, lengths, seed), options);
  }
}

const RunOptions kGrouped{.heads = {8, 2}};

TEST(Parity, OneOddSequenceOnTwoRanks) {
  expect_exact_everywhere(2, 2, {7}, kGrouped);
}

TEST(Parity, TwoSequencesOnTwoRanks) {
  expect_exact_everywhere(2, 2, {4, 3}, kGrouped);
}

TEST(Parity, OneTokenOnEightRanks) {
  expect_exact_everywhere(8, 8, {1}, kGrouped);
}

TEST(Parity, FewerSequencesThanRanks) {
  expect_exact_everywhere(4, 4, {5, 64, 19}, kGrouped);
}

TEST(Parity, MoreSequencesThanRanks) {
  expect_exact_everywhere(4, 4, {33, 1, 8, 21, 2, 3, 50, 1, 12}, kGrouped);
}

TEST(Parity, UnlikeLengthsOnEightRanks) {
  for (const std::int32_t degree : {1, 2, 4, 8}) {
    expect_exact(forced(8, degree, {137, 2041, 89}), kGrouped);
  }
  expect_exact(plan_of(8, 8, {place(0, 137, {4, 2}), place(1, 2041, {0, 8}), place(2, 89, {7, 1})}),
               kGrouped);
}

TEST(Parity, ShorterUnlikeLengthsUnderEveryDegree) {
  expect_exact_everywhere(8, 8, {37, 241, 9}, kGrouped);
}

TEST(Parity, AllLevelsAtOnce) {
  std::vector<Placement> placements = {
      place(0, 403, {0, 8}), place(1, 90, {4, 4}), place(2, 31, {2, 2}), place(3, 27, {6, 2})};
  for (std::int32_t rank = 0; rank < 8; ++rank) {
    placements.push_back(place(4 + rank, 3 + 2 * rank, {rank, 1}));
  }
  const Plan plan = plan_of(8, 8, placements);
  EXPECT_EQ(exchanged_degrees(plan.rounds.front()), (std::vector<std::int32_t>{8, 4, 2}));
  expect_exact(plan, kGrouped);
}

TEST(Parity, OneKvHead) {
  expect_exact_everywhere(8, 8, {61, 18, 5}, {.heads = {8, 1}});
}

TEST(Parity, AsManyKvHeadsAsQueryHeads) {
  expect_exact_everywhere(4, 4, {61, 18, 5}, {.heads = {4, 4}});
}

TEST(Parity, KvHeadsThatTheDegreeDoesNotDivide) {
  expect_exact_everywhere(4, 4, {61, 18, 5}, {.heads = {12, 3}});
}

TEST(Parity, AForestOfThreeTrees) {
  expect_exact_everywhere(6, 2, {61, 18, 5, 7, 1, 30, 44}, kGrouped);
}

TEST(Parity, OneRank) {
  expect_exact_everywhere(1, 1, {9, 4}, kGrouped);
}

TEST(Parity, NoSequencesAtAll) {
  expect_exact(plan_of(4, 4, {}), kGrouped);
}

TEST(Parity, StridedInputs) {
  expect_exact_everywhere(4, 4, {61, 18, 5}, {.heads = {8, 2}, .strided = true});
}

TEST(Parity, AnotherIssueOrderOfTheSamePlan) {
  Plan plan = plan_of(4, 4, {place(0, 50, {0, 4}), place(1, 20, {2, 2}), place(2, 9, {1, 1})});
  std::vector<Issue>& order = plan.rounds.front().schedule.order;
  order.clear();
  for (const std::int32_t degree : {2, 4}) {
    for (const Phase phase : {Phase::kPrologue, Phase::kCompute, Phase::kEpilogue}) {
      order.push_back({phase, degree});
    }
  }
  order.push_back({Phase::kCompute, 1});
  seal(plan);
  expect_exact(plan, kGrouped);
}

TEST(Parity, LeavesInTwoParts) {
  for (const std::int32_t part : {1, 2, 3}) {
    Plan plan = mixed(4, 4, {40, 31, 22, 17, 9, 9, 5, 4, 3, 3, 2, 1, 1}, 5);
    Round& round = plan.rounds.front();
    for (const Placement& p : round.placements) {
      if (p.node.degree == 1) {
        auto& first = round.schedule.leaf_first[static_cast<std::size_t>(p.node.first_rank)];
        first = std::min(first + 1, part);
      }
    }
    ASSERT_EQ(std::ranges::max(round.schedule.leaf_first), part);
    seal(plan);
    expect_exact(plan, kGrouped);
  }
}

TEST(Parity, SerialExchangesGiveTheSameBits) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = mixed(8, 8, {61, 40, 31, 22, 17, 9, 9, 5, 4, 3, 2, 1}, seed);
    for (const std::int32_t reach : {1, 4}) {
      RunOptions options{.heads = {8, 4}, .type = Type::kFloat32, .reach = reach};
      const Difference streamed = run_plan(plan, options);
      options.streaming = false;
      const Difference serial = run_plan(plan, options);
      EXPECT_EQ(streamed.bits, serial.bits);
      EXPECT_EQ(streamed.exchanges_forward, serial.exchanges_forward);
    }
  }
}

// Each sequence's numbers are those of the uncut level, to the last bit: only launches differ.
TEST(Parity, LevelsInTwoWaves) {
  std::size_t cuts = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Plan plan = mixed(8, 8, {61, 40, 31, 22, 17, 9, 9, 5, 4, 3, 3, 2, 1, 1}, seed);
    const Plan cut = with_random_cuts(plan, seed);
    expect_exact(cut, kGrouped);
    EXPECT_EQ(run_plan(cut, kGrouped).bits, run_plan(plan, kGrouped).bits);
    cuts += cut.rounds.front().schedule.cuts.size();
  }
  EXPECT_GT(cuts, 12U);
}

TEST(Parity, WavesInAnyOrder) {
  Plan plan = plan_of(4, 4, {place(0, 50, {0, 4}), place(1, 20, {0, 4}), place(2, 9, {1, 1})});
  Schedule& schedule = plan.rounds.front().schedule;
  schedule.cuts = {{.degree = 4, .tokens = 20}};
  schedule.order.clear();
  for (const Wave wave : {Wave::kLong, Wave::kShort}) {
    for (const Phase phase : {Phase::kPrologue, Phase::kCompute, Phase::kEpilogue}) {
      schedule.order.push_back({phase, 4, wave});
    }
  }
  schedule.order.push_back({Phase::kCompute, 1});
  seal(plan);
  expect_exact(plan, kGrouped);
}

TEST(Parity, ManyRandomPlans) {
  Random random(7);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Lengths lengths(1 + random.below(12));
    std::ranges::generate(lengths, [&] { return static_cast<std::int64_t>(1 + random.below(70)); });
    expect_exact(mixed(8, 8, lengths, seed), kGrouped);
  }
}

TEST(Parity, APlantedWrongBoundaryIsSeen) {
  const Plan plan = forced(2, 2, {4, 3});
  EXPECT_GT(run_plan(plan, kGrouped, {.lengths = {5, 2}}).out, 1e-6);
  EXPECT_GT(run_plan(plan, kGrouped, {.lengths = {5, 2}}).dk, 1e-6);
  EXPECT_GT(run_plan(plan, kGrouped, {.lengths = {7}}).dq, 1e-6);
}

// Windows of one token, of some tokens, of exactly the longest sequence, and longer than all.
TEST(Parity, SlidingWindows) {
  for (const std::int64_t window : {1, 7, 61, 100}) {
    SCOPED_TRACE("window " + std::to_string(window));
    expect_exact_everywhere(4, 4, {61, 18, 5, 7, 8}, {.heads = {8, 2}, .window = window});
  }
}

TEST(Parity, APlantedWrongWindowIsSeen) {
  for (const Plan& plan : {forced(2, 2, {9, 3}), forced(2, 1, {9, 3})}) {
    const RunOptions options{.heads = {8, 2}, .window = 4};
    EXPECT_LE(run_plan(plan, options).worst(), kExact);
    for (const std::int64_t other : {0, 3, 5}) {
      EXPECT_GT(run_plan(plan, options, {.window = other}).out, 1e-6);
      EXPECT_GT(run_plan(plan, options, {.window = other}).dv, 1e-6);
    }
  }
}

// Rank 0 of one 4-token sequence sends to rank 1 its 2 rows, half of the columns: 4 query heads and
// one KV head of k and v, 8 values each.
TEST(Parity, BytesAreThoseOfTheRowsThatLeave) {
  const Difference difference = run_plan(forced(2, 2, {4}), kGrouped);
  const std::int64_t value = 8 * 8;  // bytes of one head
  const std::int64_t columns = (4 + 2) + 4;
  EXPECT_EQ(difference.bytes, Lengths(2, 2 * (2 * columns) * value));
}

TEST(Parity, Float32) {
  const RunOptions options{.heads = {8, 1}, .type = Type::kFloat32};
  EXPECT_LE(run_plan(mixed(8, 8, {61, 18, 5, 240}, 1), options).worst(), 2e-5);
  EXPECT_LE(run_plan(forced(8, 8, {61, 18, 5, 240}), options).worst(), 2e-5);
}

TEST(Parity, Bfloat16) {
  const RunOptions options{.heads = {8, 1}, .type = Type::kBfloat16};
  EXPECT_LE(run_plan(mixed(8, 8, {61, 18, 5, 240}, 1), options).worst(), 0.15);
  EXPECT_LE(run_plan(forced(8, 8, {61, 18, 5, 240}), options).worst(), 0.15);
}

}  // namespace
}  // namespace nsp::test
