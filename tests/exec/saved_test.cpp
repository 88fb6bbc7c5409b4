// The second forward pass of a checkpointed layer, and its backward: gradients of one rank over
// whole sequences in float64, and no launch and no exchange that the marks do not ask for.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "../plan/random_cuts.h"
#include "../plan/random_marks.h"
#include "nsp/base/random.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/wave.h"
#include "parity.h"

namespace nsp::test {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr double kExact = 1e-12;
const RunOptions kCheckpointed{.heads = {8, 2}, .checkpointed = true};

Plan mixed(std::int32_t world, std::int32_t sp_max, std::uint64_t seed) {
  Random random(seed);
  std::vector<Placement> placements(2 + random.below(10));
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const auto all = degrees(sp_max);
    const auto degree = all[random.below(all.size())];
    const auto nodes = level(world, degree);
    placements[i] = place(static_cast<std::int64_t>(i),
                          static_cast<std::int64_t>(1 + random.below(60)),
                          nodes[random.below(nodes.size())]);
  }
  return make_plan({.world = world, .sp_max = sp_max}, {placements});
}

// Two for each wave above degree 1 where `counts` says so of some placement.
template <class Predicate>
std::int64_t exchanges(const Plan& plan, Predicate counts) {
  std::map<std::pair<std::int32_t, Wave>, bool> waves;
  for (const Placement& p : plan.rounds[0].placements) {
    bool& used = waves[{p.node.degree, wave_of(p, plan.rounds[0].schedule.cuts)}];
    used = used || counts(p);
  }
  std::int64_t result = 0;
  for (const auto& [wave, used] : waves) {
    result += wave.first > 1 && used ? 2 : 0;
  }
  return result;
}

// The CPU kernel launches once a sequence, on every rank of its node; once for a dummy token.
template <class Predicate>
Counts launches(const Plan& plan, Predicate counts) {
  Counts result(static_cast<std::size_t>(plan.world), 0);
  for (std::int32_t rank = 0; rank < plan.world; ++rank) {
    std::int64_t rows = 0;
    std::int64_t& launched = result[static_cast<std::size_t>(rank)];
    for (const Placement& p : plan.rounds[0].placements) {
      if (p.node.contains(rank)) {
        launched += counts(p) ? 1 : 0;
        rows += owned_tokens(p, rank);
      }
    }
    launched += rows == 0 ? 1 : 0;
  }
  return result;
}

void expect_exact_by(const Plan& plan, const RunOptions& options) {
  const Difference difference = run_plan(plan, options);
  EXPECT_LE(difference.out, kExact);
  EXPECT_LE(difference.dq, kExact);
  EXPECT_LE(difference.dk, kExact);
  EXPECT_LE(difference.dv, kExact);
  const auto redone = [](const Placement& p) { return p.mark == Mark::kRecompute; };
  const auto all = [](const Placement&) { return true; };
  const auto ranks = static_cast<std::size_t>(plan.world);
  EXPECT_EQ(difference.exchanges_forward, Counts(ranks, exchanges(plan, redone)));
  EXPECT_EQ(difference.exchanges_backward, Counts(ranks, exchanges(plan, all)));
  EXPECT_EQ(difference.launches_forward, launches(plan, redone));
  EXPECT_EQ(difference.launches_backward, launches(plan, all));
  EXPECT_EQ(difference.stash_bytes, difference.stash_formula);
}

// By collectives, by peer copies of every run of rows, and by both.
void expect_exact(const Plan& plan, RunOptions options = kCheckpointed) {
  expect_exact_by(plan, options);
  options.reach = plan.sp_max;
  expect_exact_by(plan, options);
  options.reach = 2;
  options.fetch_nanoseconds = 1'000'000'000;
  expect_exact_by(plan, options);
}

Plan all_marked(Plan plan, Mark mark) {
  return with_random_marks(std::move(plan), 0, {mark});
}

TEST(Saved, NothingIsWhatCheckpointingDoes) {
  expect_exact(all_marked(mixed(4, 4, 1), Mark::kRecompute));
}

TEST(Saved, EverythingLeavesNothingToRecompute) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Plan plan = all_marked(mixed(4, 4, seed), Mark::kSave);
    expect_exact(plan);
    const Difference difference = run_plan(plan, kCheckpointed);
    EXPECT_EQ(difference.exchanges_forward, Counts(4, 0));
  }
}

TEST(Saved, EverythingWithQueryKeyAndValue) {
  expect_exact(all_marked(mixed(4, 4, 1), Mark::kSaveQkv));
  expect_exact(all_marked(mixed(8, 8, 2), Mark::kSaveQkv));
}

TEST(Saved, EverythingOnTheHost) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Plan plan = mixed(4, 4, seed);
    expect_exact(all_marked(plan, Mark::kOffload));
    expect_exact(with_random_marks(plan, seed, {Mark::kOffload, Mark::kSave}));
    EXPECT_EQ(run_plan(all_marked(plan, Mark::kOffload), kCheckpointed).bits,
              run_plan(all_marked(plan, Mark::kSave), kCheckpointed).bits);
  }
}

TEST(Saved, ANodeSplitBySequences) {
  std::vector<Placement> placements = {
      place(0, 61, {0, 4}), place(1, 18, {0, 4}), place(2, 5, {0, 4}), place(3, 7, {2, 1})};
  for (const Mark mark : {Mark::kOffload, Mark::kSave, Mark::kSaveQkv}) {
    for (const std::size_t saved : {0U, 1U, 2U, 3U}) {
      auto marked = placements;
      marked[saved].mark = mark;
      expect_exact(make_plan({.world = 4, .sp_max = 4}, {marked}));
    }
  }
}

TEST(Saved, OneNodeOfALevelAndNotTheOther) {
  std::vector<Placement> placements = {place(0, 21, {0, 2}), place(1, 18, {2, 2})};
  placements[1].mark = Mark::kSave;
  const Plan plan = make_plan({.world = 4, .sp_max = 2}, {placements});
  expect_exact(plan);
  EXPECT_EQ(run_plan(plan, kCheckpointed).exchanges_forward, Counts(4, 2));  // on all four
}

TEST(Saved, RandomMarksOfRandomPlans) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_exact(with_random_marks(mixed(8, 8, seed), seed));
  }
}

TEST(Saved, RandomMarksOfLevelsInTwoWaves) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_exact(with_random_cuts(with_random_marks(mixed(8, 8, seed), seed), seed));
  }
}

TEST(Saved, EveryShapeOfHeadsAndStrides) {
  for (const Heads& heads : {Heads{8, 1}, Heads{8, 8}, Heads{12, 3}, Heads{4, 2}}) {
    SCOPED_TRACE(heads.query);
    for (const bool strided : {false, true}) {
      const RunOptions options{.heads = heads, .strided = strided, .checkpointed = true};
      expect_exact(with_random_marks(mixed(4, 4, 5), 5), options);
      expect_exact(with_random_marks(mixed(4, 4, 6), 7), options);
    }
  }
}

TEST(Saved, AForestOfThreeTreesAndOneRank) {
  expect_exact(with_random_marks(mixed(6, 2, 3), 3));
  expect_exact(with_random_marks(mixed(1, 1, 3), 3));
}

TEST(Saved, LeavesThatRunInTwoParts) {
  for (const std::int32_t first : {1, 2, 3, 4}) {
    SCOPED_TRACE(first);
    std::vector<Placement> placements = {place(0, 40, {0, 2})};
    for (std::int64_t i = 1; i <= 4; ++i) {
      placements.push_back(place(i, 5 * i, {0, 1}));
      placements.back().mark = static_cast<Mark>((i + first) % 4);
    }
    Plan plan = make_plan({.world = 2, .sp_max = 2}, {placements});
    plan.rounds[0].schedule.leaf_first[0] = first;
    seal(plan);
    expect_exact(plan);
  }
}

TEST(Saved, SlidingWindows) {
  const RunOptions options{.heads = {8, 2}, .window = 7, .checkpointed = true};
  expect_exact(with_random_marks(mixed(4, 4, 8), 8), options);
}

TEST(Saved, OneExchangeBringsTheOperandsOfASavedSequence) {
  // 4 tokens on 2 ranks: a rank sends its 2 rows, half of the columns. Beside dout (4 query heads)
  // travel out and q (4 each), k and v (1 each); then dq, dk, dv come back. 8 values of 8 bytes.
  const Plan plan =
      all_marked(make_plan({.world = 2, .sp_max = 2}, {{place(0, 4, {0, 2})}}), Mark::kSave);
  const std::int64_t columns = 4 + (4 + 4 + 1 + 1) + (4 + 1 + 1);
  EXPECT_EQ(run_plan(plan, kCheckpointed).bytes, Counts(2, 2 * columns * 64));
}

}  // namespace
}  // namespace nsp::test
