// The formulas against what torch's CPU allocator hands out while the executor runs.
#include "nsp/exec/buffer_bytes.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include "../plan/random_cuts.h"
#include "../plan/random_marks.h"
#include "../plan/random_plan.h"
#include "nsp/attention/ragged.h"
#include "nsp/exec/pass.h"
#include "nsp/exec/stash.h"
#include "nsp/plan/exchanges.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"
#include "recorder.h"

namespace nsp {
namespace {

using at::Tensor;

// Bytes held on the CPU by this thread's tensors since it was made.
class Meter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    held += size;
    most = std::max(most, held);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t held = 0;
  std::int64_t most = 0;
};

struct Measured {
  std::int64_t most = 0;  // beside the tensors that the layer itself is given
  std::int64_t kept = 0;
};

struct Rank {
  Rank(std::int32_t rank,
       const Plan& plan,
       const Heads& given,
       std::int32_t reach = 1,
       std::int64_t fetch_nanoseconds = 0,
       at::ScalarType values = at::kFloat)
      : heads(given), type(values) {
    auto world = std::make_shared<World>();
    world->communicator = std::make_unique<test::Recorder>(rank, plan.world, issued);
    world->attention = std::make_unique<test::NoAttention>();
    if (reach > 1) {
      world->communicator->peers =
          std::make_unique<test::IdlePeers>(rank, reach, fetch_nanoseconds);
    }
    pass.program = std::make_shared<Program>(world, to_json(plan).dump(), heads);
  }

  const ProgramRound& round() const { return pass.program->round(0); }
  Tensor rows(std::int64_t count) const { return at::zeros({round().tokens, count, 2}, type); }

  Measured forward(std::vector<Tensor>& kept) const {
    const Tensor q = rows(heads.query), k = rows(heads.kv), v = rows(heads.kv);
    const auto meter = std::make_shared<Meter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const Tensor out = run_forward(pass, q, k, v, kept);
    const auto result = static_cast<std::int64_t>(out.nbytes());
    return {meter->most - result, meter->held - result};
  }

  // A forward pass whose marked outputs the thread's stash keeps.
  void record() const {
    const Tensor q = rows(heads.query), kv = rows(heads.kv);
    std::vector<Tensor> kept;
    const Tensor out = run_forward(pass, q, kv, kv, kept);
    std::vector<Saved> blocks;
    for (std::size_t i = 4; i < kept.size(); i += 3) {
      blocks.push_back({.qkv = kept[i], .out = kept[i + 1], .lse = kept[i + 2]});
    }
    stash_call(pass, out, blocks);
  }

  Measured backward(const std::vector<Tensor>& kept) const {
    const Tensor dout = rows(heads.query);
    const auto meter = std::make_shared<Meter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const std::vector<Tensor> gradients = run_backward(pass, kept, dout);
    std::int64_t result = 0;
    for (const Tensor& gradient : gradients) {
      result += static_cast<std::int64_t>(gradient.nbytes());
    }
    return {meter->most - result, meter->held - result};
  }

  Heads heads;
  at::ScalarType type;
  std::vector<test::Issued> issued;
  Pass pass;
};

constexpr std::int64_t kDearFetches = 1'000'000'000;  // one a source, then a kernel
constexpr ValueShape kValue{.head_dim = 2, .bytes = 4};

// Bytes of a forward pass, after both passes were compared with the formulas.
std::int64_t expect_formulas(const Rank& rank) {
  const ValueShape value{.head_dim = 2,
                         .bytes = static_cast<std::int64_t>(at::elementSize(rank.type))};
  std::vector<Tensor> kept;
  rank.forward(kept);  // index tensors are made at the first use
  rank.backward(kept);
  kept.clear();
  const Measured forward = rank.forward(kept);
  EXPECT_EQ(forward.most, exchange_bytes(rank.round(), rank.heads, value, false));
  const Measured backward = rank.backward(kept);
  EXPECT_EQ(backward.most, exchange_bytes(rank.round(), rank.heads, value, true));
  EXPECT_EQ(backward.kept, 0);
  return forward.most;
}

TEST(BufferBytes, EqualWhatTheExecutorAllocates) {
  std::int64_t exchanged = 0;
  for (const Heads& heads : {Heads{.query = 32, .kv = 2}, Heads{.query = 32, .kv = 32}}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Plan made = random_plan(seed);
      const Plan plan = seed % 2 == 0 ? made : with_random_cuts(made, seed);
      for (const std::int32_t index : {0, plan.world - 1}) {
        SCOPED_TRACE(fmt::format("seed {}, rank {}, kv heads {}", seed, index, heads.kv));
        exchanged += expect_formulas(Rank(index, plan, heads));
        exchanged += expect_formulas(Rank(index, plan, heads, plan.sp_max));  // runs
        exchanged += expect_formulas(Rank(index, plan, heads, plan.sp_max, kDearFetches));
      }
    }
  }
  EXPECT_GT(exchanged, 0);
}

// Offloaded rows are no buffers of an exchange: offload_bytes counts what comes back.
TEST(BufferBytes, EqualWhatARecomputedPassAllocates) {
  std::int64_t exchanged = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Plan made =
        with_random_marks(random_plan(seed), seed, {Mark::kRecompute, Mark::kSave, Mark::kSaveQkv});
    const Plan plan = seed % 2 == 0 ? made : with_random_cuts(made, seed);
    for (const std::int32_t index : {0, plan.world - 1}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", rank " << index);
      Rank rank(index, plan, {.query = 32, .kv = 32});
      if (!rank.round().recomputed) {
        continue;
      }
      const ProgramRound& recomputed = *rank.round().recomputed;
      const auto stash = std::make_shared<Stash>();
      std::vector<Tensor> kept;
      enter_stash(stash, StashUse::kRecord);
      rank.record();
      leave_stash();
      enter_stash(stash, StashUse::kReplay);
      rank.pass.stashed = take_stashed(rank.pass);
      leave_stash();
      rank.forward(kept);  // index tensors are made at the first use
      rank.backward(kept);
      kept.clear();
      EXPECT_EQ(rank.forward(kept).most, exchange_bytes(recomputed, rank.heads, kValue, false));
      EXPECT_EQ(rank.backward(kept).most, exchange_bytes(recomputed, rank.heads, kValue, true));
      exchanged += exchange_bytes(recomputed, rank.heads, kValue, true);
    }
  }
  EXPECT_GT(exchanged, 0);
}

// In float32 and bfloat16, whose sums are apart; KV heads that inner ranks share, and that they do
// not.
TEST(BufferBytes, EqualWhatEveryBackendAllocates) {
  const std::vector<Way> ways = {{4, Backend::kGather, 1},
                                 {4, Backend::kRing, 1},
                                 {8, Backend::kRing, 1},
                                 {8, Backend::kUspRing, 2},
                                 {8, Backend::kUspGather, 2},
                                 {8, Backend::kUspRing, 4},
                                 {8, Backend::kUspGather, 4}};
  for (const Way& way : ways) {
    for (const std::int64_t kv_heads : {1, 4}) {
      const Plan plan = make_plan({.world = 8, .sp_max = 8},
                                  {{place(0, 171, 0, way),
                                    place(1, 38, 0, way),
                                    place(2, 3, 0, way),
                                    place(3, 40, {0, 2}),
                                    place(4, 5, {6, 1})}});
      for (const std::int32_t index : {0, 1, 3, 7}) {
        for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
          SCOPED_TRACE(fmt::format("degree {}, backend {}, inner {}, rank {}, kv heads {}",
                                   way.degree,
                                   name(way.backend),
                                   way.ulysses_degree,
                                   index,
                                   kv_heads));
          expect_formulas(Rank(index, plan, {.query = 8, .kv = kv_heads}, 1, 0, type));
        }
      }
    }
  }
}

TEST(BufferBytes, EqualWhatRandomPlansOfAllBackendsAllocate) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Plan made = random_ways_plan(seed);
    const Plan plan = seed % 2 == 0 ? made : with_random_cuts(made, seed);
    for (const std::int32_t index : {0, plan.world - 1}) {
      SCOPED_TRACE(fmt::format("seed {}, rank {}", seed, index));
      expect_formulas(Rank(index, plan, {.query = 32, .kv = 2}));
      expect_formulas(Rank(index, plan, {.query = 32, .kv = 2}, plan.sp_max));
    }
  }
}

// Both waves of a level are there at once: 8 and 4 tokens, 256 bytes in the arena for each
// exchange.
TEST(BufferBytes, ByPeerCopiesALevelInTwoWavesTakesAsMuch) {
  Plan plan = make_plan({.world = 2, .sp_max = 2}, {{place(0, 8, {0, 2}), place(1, 4, {0, 2})}});
  Round& round = plan.rounds[0];
  round.schedule.cuts = {{.degree = 2, .tokens = 4}};
  round.schedule.order = default_order(round);
  seal(plan);
  const Rank rank(0, plan, {.query = 4, .kv = 2}, 2);
  EXPECT_EQ(arena_bytes(rank.round(), rank.heads, kValue), 4 * 256);
  EXPECT_EQ(exchange_bytes(rank.round(), rank.heads, kValue, false), 12 * 48);
}

// One sequence of 8 tokens on 2 ranks, 4 query and 2 KV heads of 2 floats: 32 bytes a row of q, k,
// v, 16 of out. Half of the 8 rows leave a rank: 4 x 32 and 4 x 16 bytes, 256 each in the arena.
TEST(BufferBytes, ByPeerCopiesAOneLevelPlanIsSolvedByHand) {
  const Plan plan = make_plan({.world = 2, .sp_max = 2}, {{place(0, 8, {0, 2})}});
  const Rank rank(0, plan, {.query = 4, .kv = 2}, 2);
  EXPECT_EQ(arena_bytes(rank.round(), rank.heads, kValue), 512);
  // Forward: kept 8 x 48; out lands in the layer's rows. Backward: 8 x (16 + 32).
  EXPECT_EQ(exchange_bytes(rank.round(), rank.heads, kValue, false), 384);
  EXPECT_EQ(exchange_bytes(rank.round(), rank.heads, kValue, true), 384);
}

TEST(BufferBytes, ArenasAreEqualOnAllRanks) {
  const Heads heads{.query = 32, .kv = 2};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Plan plan = with_random_cuts(random_plan(seed), seed);
    const Rank first(0, plan, heads, plan.sp_max);
    const std::int64_t bytes = arena_bytes(first.round(), heads, kValue);
    for (std::int32_t index = 1; index < plan.world; index += 3) {
      const Rank rank(index, plan, heads, plan.sp_max);
      EXPECT_EQ(arena_bytes(rank.round(), heads, kValue), bytes) << "seed " << seed;
    }
  }
}

TEST(BufferBytes, AOneLevelPlanIsSolvedByHand) {
  // One sequence of 8 tokens on 2 ranks, 4 query and 2 KV heads of 2 floats (8 bytes a head): a
  // rank works on 2 + 2 x 1 heads: 32 bytes a row of q, k, v, 16 of out. It sends and receives 8
  // rows.
  const Plan plan = make_plan({.world = 2, .sp_max = 2}, {{place(0, 8, {0, 2})}});
  const Rank rank(0, plan, {.query = 4, .kv = 2});
  // Forward: q, k, v sent and received, 2 x 8 x 32; later kept 8 x 48 and out received 8 x 16.
  EXPECT_EQ(exchange_bytes(rank.round(), rank.heads, kValue, false), 512);
  // Backward: 8 rows of dq, dk, dv sent and received.
  EXPECT_EQ(exchange_bytes(rank.round(), rank.heads, kValue, true), 512);
}

TEST(BufferBytes, NoPlanWithinTheBudgetNeedsMoreThanTheBound) {
  const Heads heads{.query = 32, .kv = 2};
  const test::NoAttention kernel;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Plan plan = seed % 2 == 0 ? random_plan(seed) : random_ways_plan(seed);
    std::int64_t most = 1;
    std::vector<Way> ways;
    for (const Round& round : plan.rounds) {
      std::vector<std::int64_t> tokens = rank_tokens(round, plan.world);
      // Pieces of a sequence differ by a row: a peer may hold one or two more of each.
      most = std::max(most, *std::ranges::max_element(tokens) + 2 * std::ssize(round.placements));
      const std::vector<Way> used = exchanged_ways(round);
      ways.insert(ways.end(), used.begin(), used.end());
    }
    const MemoryBound bound = memory_bound(kernel, heads, kValue, most, ways);
    const MemoryBound saving = memory_bound(kernel, heads, kValue, most, ways, 1, true);
    const Plan cut = seed % 4 < 2 ? plan : with_random_cuts(plan, seed);
    const Rank rank(0, cut, heads);
    const Rank marked(0, with_random_marks(cut, seed), heads);
    for (const bool backward : {false, true}) {
      EXPECT_LE(exchange_bytes(rank.round(), heads, kValue, backward), bound.exchange_bytes)
          << "seed " << seed;
      if (marked.round().recomputed) {
        EXPECT_LE(exchange_bytes(*marked.round().recomputed, heads, kValue, backward),
                  saving.exchange_bytes)
            << "seed " << seed;
      }
    }
  }
}

TEST(BufferBytes, WorkspaceOfTheCpuKernelIsWhatItAllocates) {
  at::set_num_threads(1);  // the meter sees its own thread
  const auto kernel = make_cpu_attention();
  const Ragged sequences({300, 1200, 7});
  const LaunchShape shape{.tokens = sequences.tokens(),
                          .sequences = sequences.count(),
                          .longest = sequences.longest(),
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 128,
                          .value_bytes = 4};
  const auto rows = [&](std::int64_t heads) { return at::zeros({shape.tokens, heads, 128}); };
  const Tensor q = rows(8), k = rows(4), v = rows(4), out = rows(8), dout = rows(8);
  const AttentionGradients gradients{.dq = rows(8), .dk = rows(4), .dv = rows(4)};
  const AttentionInputs inputs{.q = q, .k = k, .v = v, .sequences = &sequences};
  Tensor lse;
  const auto allocated = [](const auto& launch) {
    const auto meter = std::make_shared<Meter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    launch();
    return static_cast<double>(meter->most);
  };
  // Beside the formula: lse, and blocks of scores of a megabyte and a few rows.
  constexpr double kBlocks = 1.1e6;
  const auto forward = static_cast<double>(kernel->workspace_bytes(shape, false));
  const auto backward = static_cast<double>(kernel->workspace_bytes(shape, true));
  EXPECT_NEAR(allocated([&] { lse = kernel->forward(inputs, out); }), forward, kBlocks);
  EXPECT_NEAR(
      allocated([&] { kernel->backward(inputs, out, lse, dout, gradients); }), backward, kBlocks);
  EXPECT_GT(forward, 4 * kBlocks);
}

}  // namespace
}  // namespace nsp
