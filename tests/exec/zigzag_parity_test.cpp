// Gather, ring and usp give what one rank over whole sequences gives: float64, out and all
// gradients.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "../plan/random_cuts.h"
#include "nsp/base/random.h"
#include "nsp/plan/exchanges.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/wave.h"
#include "parity.h"

namespace nsp::test {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr double kExact = 1e-10;
constexpr Backend kRows[] = {Backend::kGather, Backend::kRing};
constexpr Backend kBoth[] = {Backend::kUspRing, Backend::kUspGather};

Plan plan_of(std::int32_t world, std::vector<Placement> placements) {
  return make_plan({.world = world, .sp_max = world}, {std::move(placements)});
}

// Every sequence by one way, dealt round the nodes.
Plan forced(std::int32_t world, const Way& way, const Lengths& lengths) {
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto sequence = static_cast<std::int64_t>(i);
    const auto first = static_cast<std::int32_t>(sequence) * way.degree % world;
    placements.push_back(place(sequence, lengths[i], first, way));
  }
  return plan_of(world, std::move(placements));
}

// As many exchanges on every rank as the ways ask for, whatever it holds.
void expect_exact(const Plan& plan, const RunOptions& options) {
  const Difference difference = run_plan(plan, options);
  EXPECT_LE(difference.out, kExact);
  EXPECT_LE(difference.dq, kExact);
  EXPECT_LE(difference.dk, kExact);
  EXPECT_LE(difference.dv, kExact);
  ExchangeCount wanted;
  for (const Way& way : exchanged_ways(plan.rounds.front())) {
    const bool usp = way.ulysses_degree > 1 && way.ulysses_degree < way.degree;
    const HeadSplit heads = usp ? split_heads(options.heads, way.ulysses_degree) : HeadSplit{};
    const ExchangeCount count = exchanges_of(way, heads.kv == 1 ? heads.copies : 1);
    const std::int64_t waves = std::ssize(waves_of(way, plan.rounds.front()));
    wanted.forward += waves * count.forward;
    wanted.backward += waves * count.backward;
  }
  const auto ranks = static_cast<std::size_t>(plan.world);
  EXPECT_EQ(difference.exchanges_forward, Lengths(ranks, wanted.forward));
  EXPECT_EQ(difference.exchanges_backward, Lengths(ranks, wanted.backward));
}

Way rows_way(std::int32_t degree, Backend backend) {
  return {.degree = degree, .backend = backend, .ulysses_degree = 1};
}

// gather, ring at every degree; usp with every inner size that divides the heads.
std::vector<Way> zigzag_ways(std::int32_t sp_max, std::int64_t heads) {
  std::vector<Way> ways;
  for (std::int32_t degree = 2; degree <= sp_max; degree *= 2) {
    for (const Backend backend : kRows) {
      ways.push_back(rows_way(degree, backend));
    }
    for (std::int32_t inner = 2; inner < degree && heads % inner == 0; inner *= 2) {
      for (const Backend backend : kBoth) {
        ways.push_back({.degree = degree, .backend = backend, .ulysses_degree = inner});
      }
    }
  }
  return ways;
}

std::string text(const Way& way) {
  return "degree " + std::to_string(way.degree) + ", backend " +
         std::to_string(static_cast<int>(way.backend)) + ", inner " +
         std::to_string(way.ulysses_degree);
}

void expect_exact_by_every_way(std::int32_t world,
                               const Lengths& lengths,
                               const RunOptions& options) {
  for (const Way& way : zigzag_ways(world, options.heads.query)) {
    SCOPED_TRACE(text(way));
    expect_exact(forced(world, way, lengths), options);
  }
}

const RunOptions kGrouped{.heads = {8, 2}};

TEST(ZigzagParity, OneOddSequenceOnTwoRanks) {
  expect_exact_by_every_way(2, {7}, kGrouped);
}

TEST(ZigzagParity, TwoSequencesOnTwoRanks) {
  expect_exact_by_every_way(2, {4, 3}, kGrouped);
}

TEST(ZigzagParity, FewerTokensThanPieces) {
  expect_exact_by_every_way(8, {1}, kGrouped);
  expect_exact_by_every_way(4, {1, 2, 3, 5, 1}, kGrouped);
}

TEST(ZigzagParity, FewerSequencesThanRanks) {
  expect_exact_by_every_way(4, {5, 64, 19}, kGrouped);
}

TEST(ZigzagParity, MoreSequencesThanRanks) {
  expect_exact_by_every_way(4, {33, 1, 8, 21, 2, 3, 50, 1, 12}, kGrouped);
}

TEST(ZigzagParity, UnlikeLengthsOnEightRanks) {
  expect_exact_by_every_way(8, {37, 241, 9}, kGrouped);
}

TEST(ZigzagParity, ALongSequenceOnFourRanks) {
  for (const Backend backend : kRows) {
    expect_exact(forced(4, rows_way(4, backend), {2999}), {.heads = {2, 1}});
  }
  for (const Backend backend : kBoth) {
    expect_exact(forced(4, {.degree = 4, .backend = backend, .ulysses_degree = 2}, {2999}),
                 {.heads = {2, 1}});
  }
}

TEST(ZigzagParity, HeadsThatTheDegreeDoesNotDivide) {
  expect_exact_by_every_way(4, {61, 18, 5}, {.heads = {7, 7}});
  expect_exact_by_every_way(4, {61, 18, 5}, {.heads = {7, 1}});
}

TEST(ZigzagParity, DegreesBeyondTheHeads) {
  expect_exact_by_every_way(8, {61, 18, 5}, {.heads = {2, 1}});
}

// Inner ranks that share a KV head: 2 and 4 copies; runs of copies that cross ranks; none.
TEST(ZigzagParity, CopiedKvHeads) {
  expect_exact_by_every_way(8, {61, 18, 5, 2}, {.heads = {8, 1}});
  expect_exact_by_every_way(8, {61, 18, 5, 2}, {.heads = {4, 2}});
  expect_exact_by_every_way(4, {61, 18, 5, 2}, {.heads = {12, 3}});
  expect_exact_by_every_way(4, {61, 18, 5, 2}, {.heads = {4, 4}});
}

TEST(ZigzagParity, AForestOfThreeTrees) {
  for (const Backend backend : kRows) {
    const Plan plan = make_plan({.world = 6, .sp_max = 2},
                                {{place(0, 61, 0, rows_way(2, backend)),
                                  place(1, 18, 4, rows_way(2, backend)),
                                  place(2, 5, {3, 1})}});
    expect_exact(plan, kGrouped);
  }
}

TEST(ZigzagParity, StridedInputs) {
  expect_exact_by_every_way(4, {61, 18, 5}, {.heads = {8, 2}, .strided = true});
}

// One level of every backend, ring below it, ulysses below that, and leaves.
TEST(ZigzagParity, SeveralBackendsOnOneLevelAndOthersBelow) {
  std::vector<Placement> placements = {place(0, 90, {0, 8}),
                                       place(1, 71, 0, rows_way(8, Backend::kGather)),
                                       place(2, 66, 0, rows_way(8, Backend::kRing)),
                                       place(3, 50, 0, {8, Backend::kUspRing, 4}),
                                       place(4, 49, 0, {8, Backend::kUspGather, 2}),
                                       place(5, 33, 4, rows_way(4, Backend::kRing)),
                                       place(6, 21, 0, {4, Backend::kUspGather, 2}),
                                       place(7, 17, {2, 2}),
                                       place(8, 12, 6, rows_way(2, Backend::kGather)),
                                       place(9, 4, {5, 1})};
  const Plan plan = plan_of(8, placements);
  expect_exact(plan, kGrouped);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    expect_exact(with_random_cuts(plan, seed), kGrouped);
  }
}

TEST(ZigzagParity, ManyRandomPlans) {
  Random random(11);
  for (int seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("plan " + std::to_string(seed));
    std::map<std::pair<std::int32_t, Backend>, std::int32_t> inner;  // one for each level
    std::vector<Placement> placements;
    const auto count = static_cast<std::int64_t>(1 + random.below(12));
    std::vector<Way> ways = zigzag_ways(8, 8);
    for (const std::int32_t degree : {1, 2, 4, 8}) {
      ways.push_back(head_split(degree));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      Way way = ways[random.below(ways.size())];
      way.ulysses_degree =
          inner.try_emplace({way.degree, way.backend}, way.ulysses_degree).first->second;
      const auto nodes = static_cast<std::uint64_t>(8 / way.degree);
      const auto first = static_cast<std::int32_t>(random.below(nodes)) * way.degree;
      placements.push_back(place(i, static_cast<std::int64_t>(1 + random.below(70)), first, way));
    }
    expect_exact(plan_of(8, placements), kGrouped);
  }
}

// Gather's numbers are those of the uncut level, to the last bit. Ring's need not be: it merges all
// rows of a launch in one vector loop, whose last lanes round exponentials otherwise.
TEST(ZigzagParity, LevelsInTwoWaves) {
  for (const Way& way : zigzag_ways(4, 8)) {
    SCOPED_TRACE(text(way));
    const Plan plan = forced(4, way, {61, 40, 22, 9, 5, 3, 1});
    Plan cut = plan;
    Round& round = cut.rounds.front();
    round.schedule.cuts = {{.degree = way.degree, .tokens = 22}};
    round.schedule.order = default_order(round);
    seal(cut);
    expect_exact(cut, kGrouped);
    if (way.backend == Backend::kGather || way.backend == Backend::kUspGather) {
      EXPECT_EQ(run_plan(cut, kGrouped).bits, run_plan(plan, kGrouped).bits);
    }
  }
}

TEST(ZigzagParity, AnotherIssueOrderOfTheSamePlan) {
  Plan plan = plan_of(4,
                      {place(0, 50, 0, rows_way(4, Backend::kRing)),
                       place(1, 20, 2, rows_way(2, Backend::kGather)),
                       place(2, 30, 0, rows_way(2, Backend::kRing)),
                       place(3, 9, {1, 1})});
  plan.rounds.front().schedule.order = {{Phase::kPrologue, 2},
                                        {Phase::kPrologue, 4},
                                        {Phase::kCompute, 1},
                                        {Phase::kCompute, 4},
                                        {Phase::kCompute, 2},
                                        {Phase::kEpilogue, 2},
                                        {Phase::kEpilogue, 4}};
  seal(plan);
  expect_exact(plan, kGrouped);
}

TEST(ZigzagParity, APlantedWrongBoundaryIsSeen) {
  for (const Way& way : zigzag_ways(4, 8)) {
    const Plan plan = forced(4, way, {9, 6});
    EXPECT_GT(run_plan(plan, kGrouped, {.lengths = {8, 7}}).out, 1e-6) << text(way);
    EXPECT_GT(run_plan(plan, kGrouped, {.lengths = {15}}).dk, 1e-6) << text(way);
  }
}

// One sequence of 8 tokens on 2 ranks: index 0 sends 2 rows of K and V, index 1 sends 4, forward
// and backward; their gradients return. 2 x 2 heads of 8 values of 8 bytes a row.
TEST(ZigzagParity, OnlyRowsThatAreSeenTravel) {
  for (const Backend backend : kRows) {
    const Difference difference = run_plan(forced(2, rows_way(2, backend), {8}), kGrouped);
    const std::int64_t row = 2 * 2 * 8 * 8;
    EXPECT_EQ(difference.bytes, Lengths({(2 + 2 + 4) * row, (4 + 4 + 2) * row}));
  }
}

TEST(ZigzagParity, LowerPrecisions) {
  for (const Way& way : zigzag_ways(4, 8)) {
    const Plan plan = forced(4, way, {61, 18, 5, 240});
    EXPECT_LE(run_plan(plan, {.heads = {8, 1}, .type = Type::kFloat32}).worst(), 2e-5) << text(way);
    EXPECT_LE(run_plan(plan, {.heads = {8, 1}, .type = Type::kBfloat16}).worst(), 0.15)
        << text(way);
  }
}

}  // namespace
}  // namespace nsp::test
