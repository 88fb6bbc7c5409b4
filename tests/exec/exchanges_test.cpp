// Every exchange that the executor really issues, forward and backward: sends match receives
// between all pairs of ranks, for random plans, cuts and permitted issue orders.
#include "nsp/plan/exchanges.h"

#include <numeric>
#include <set>
#include <utility>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "../plan/random_cuts.h"
#include "../plan/random_marks.h"
#include "../plan/random_plan.h"
#include "nsp/base/random.h"
#include "nsp/exec/attention_calls.h"
#include "nsp/exec/pass.h"
#include "nsp/exec/program.h"
#include "nsp/exec/stash.h"
#include "nsp/plan/check.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/wave.h"
#include "recorder.h"

namespace nsp {
namespace {

using test::Issued;

constexpr Heads kHeads{.query = 32, .kv = 2};  // degrees up to 32

// What one rank issues for all rounds of a plan, a forward and a backward pass each.
std::vector<Issued> issued_by(std::int32_t rank, const Plan& plan) {
  std::vector<Issued> issued;
  auto world = std::make_shared<World>();
  world->communicator = std::make_unique<test::Recorder>(rank, plan.world, issued);
  world->attention = std::make_unique<test::NoAttention>();
  Pass pass{.program = std::make_shared<Program>(world, to_json(plan).dump(), kHeads)};
  for (pass.round = 0; pass.round < pass.program->num_rounds(); ++pass.round) {
    const std::int64_t tokens = pass.program->round(pass.round).tokens;
    const at::Tensor q = at::zeros({tokens, kHeads.query, 1});
    const at::Tensor kv = at::zeros({tokens, kHeads.kv, 1});
    std::vector<at::Tensor> kept;
    run_backward(pass, kept, run_forward(pass, q, kv, kv, kept));
  }
  return issued;
}

std::vector<std::vector<Issued>> issued_by_all(const Plan& plan) {
  std::vector<std::vector<Issued>> ranks;
  for (std::int32_t rank = 0; rank < plan.world; ++rank) {
    ranks.push_back(issued_by(rank, plan));
  }
  return ranks;
}

// Forward and backward, by the ways that a round uses and their waves.
std::size_t expected_exchanges(const Round& round) {
  std::int64_t count = 0;
  for (const Way& way : exchanged_ways(round)) {
    const bool usp = way.backend == Backend::kUspRing || way.backend == Backend::kUspGather;
    const HeadSplit heads = usp ? split_heads(kHeads, way.ulysses_degree) : HeadSplit{};
    const ExchangeCount exchanges = exchanges_of(way, heads.kv == 1 ? heads.copies : 1);
    count += std::ssize(waves_of(way, round)) * (exchanges.forward + exchanges.backward);
  }
  return static_cast<std::size_t>(count);
}

// Any interleaving of the waves' prologue, compute, epilogue.
std::vector<Issue> random_order(const Round& round, Random& random) {
  std::vector<std::vector<Issue>> levels = {{{Phase::kCompute, 1}}};
  for (const auto& [degree, wave] : exchanged_waves(round)) {
    levels.push_back({{Phase::kEpilogue, degree, wave},
                      {Phase::kCompute, degree, wave},
                      {Phase::kPrologue, degree, wave}});
  }
  std::vector<Issue> order;
  while (!levels.empty()) {
    const auto chosen = levels.begin() + static_cast<std::ptrdiff_t>(random.below(levels.size()));
    order.push_back(chosen->back());
    chosen->pop_back();
    if (chosen->empty()) {
      levels.erase(chosen);
    }
  }
  return order;
}

Plan shuffled(Plan plan, std::uint64_t seed) {
  Random random(seed);
  for (Round& round : plan.rounds) {
    if (random.below(2) == 0) {
      cut_at_random(round, random);
    }
    round.schedule.order = random_order(round, random);
  }
  seal(plan);
  return plan;
}

TEST(Exchanges, MatchForRandomPlansInEveryPermittedOrder) {
  std::set<std::int32_t> worlds;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const Plan plan = shuffled(seed % 2 == 0 ? random_plan(seed) : random_ways_plan(seed), seed);
    ASSERT_EQ(find_violations(plan), std::vector<std::string>{}) << "seed " << seed;
    const auto ranks = issued_by_all(plan);
    EXPECT_EQ(test::find_mismatch(ranks), "") << "seed " << seed;
    std::size_t expected = 0;
    for (const Round& round : plan.rounds) {
      expected += expected_exchanges(round);
    }
    EXPECT_EQ(ranks[0].size(), expected) << "seed " << seed;
    worlds.insert(plan.world);
  }
  EXPECT_GE(worlds.size(), 5U);
}

// What one rank issues inside checkpointed layers: two forward passes, then backward.
std::vector<Issued> issued_checkpointed(std::int32_t rank, const Plan& plan) {
  std::vector<Issued> issued;
  auto world = std::make_shared<World>();
  world->communicator = std::make_unique<test::Recorder>(rank, plan.world, issued);
  world->attention = std::make_unique<test::NoAttention>();
  const auto handle = add_program(std::make_shared<Program>(world, to_json(plan).dump(), kHeads));
  for (std::int64_t round = 0; round < std::ssize(plan.rounds); ++round) {
    const std::int64_t tokens = find_program(handle)->round(round).tokens;
    const at::Tensor q = at::zeros({tokens, kHeads.query, 1});
    const at::Tensor kv = at::zeros({tokens, kHeads.kv, 1});
    const auto stash = std::make_shared<Stash>();
    for (const StashUse use : {StashUse::kRecord, StashUse::kReplay}) {
      enter_stash(stash, use);
      const auto [out, kept] = call_forward(q, kv, kv, handle, round, 1, 0);
      leave_stash();
      if (use == StashUse::kReplay) {
        call_backward(out, q, kv, kv, out, kept);
      }
    }
  }
  release_program(handle);
  return issued;
}

TEST(Exchanges, MatchInCheckpointedLayersForRandomMarks) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Plan plan = shuffled(with_random_marks(random_plan(seed), seed), seed);
    std::vector<std::vector<Issued>> ranks;
    for (std::int32_t rank = 0; rank < plan.world; ++rank) {
      ranks.push_back(issued_checkpointed(rank, plan));
    }
    EXPECT_EQ(test::find_mismatch(ranks), "") << "seed " << seed;
  }
}

TEST(Exchanges, MovesEveryRowOfALevelAndNoOther) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = random_plan(seed);
    const auto ranks = issued_by_all(plan);
    for (std::int32_t rank = 0; rank < plan.world; ++rank) {
      std::int64_t expected = 0;
      for (const Round& round : plan.rounds) {
        for (const Segment& segment : rank_row(round, rank)) {
          expected += segment.degree > 1 ? segment.degree * segment.tokens() : 0;
        }
      }
      std::int64_t sent = 0;
      for (const Issued& exchange : ranks[static_cast<std::size_t>(rank)]) {
        const bool rows = exchange.purpose.starts_with("forward prologue");
        sent += rows ? std::accumulate(exchange.send.begin(), exchange.send.end(), 0L) : 0;
      }
      EXPECT_EQ(sent, expected) << "seed " << seed << ", rank " << rank;
    }
  }
}

TEST(Exchanges, ADifferentBackendIsFound) {
  const auto made = [](Backend backend) {
    return make_plan({.world = 4, .sp_max = 4}, {{place(0, 19, 0, {4, backend, 1})}});
  };
  auto ranks = issued_by_all(made(Backend::kRing));
  EXPECT_EQ(test::find_mismatch(ranks), "");
  ranks[1] = issued_by(1, made(Backend::kGather));
  EXPECT_NE(test::find_mismatch(ranks), "");
}

TEST(Exchanges, APlantedMismatchIsFound) {
  const auto made = [](std::int64_t tokens) {
    return make_plan({.world = 4, .sp_max = 4},
                     {{place(0, tokens, {0, 4}), place(1, 6, {2, 2}), place(2, 5, {0, 1})}});
  };
  auto ranks = issued_by_all(made(8));
  EXPECT_EQ(test::find_mismatch(ranks), "");
  ranks[2] = issued_by(2, made(9));  // this rank has another plan
  EXPECT_NE(test::find_mismatch(ranks).find("rows, rank"), std::string::npos);
  Plan other = made(8);
  std::swap(other.rounds[0].schedule.order[0], other.rounds[0].schedule.order[1]);
  seal(other);
  ranks[2] = issued_by(2, other);  // the same work in another order
  EXPECT_EQ(test::find_mismatch(ranks), "rank 2 issues another exchange than rank 0 at place 0");
}

}  // namespace
}  // namespace nsp
