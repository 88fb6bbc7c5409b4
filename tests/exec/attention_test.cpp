// The edges of the operator: what it refuses, and what must work although nothing is there.
#include "nsp/exec/attention.h"

#include <functional>
#include <memory>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nsp/base/error.h"
#include "nsp/comm/c10d.h"
#include "nsp/exec/program.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"
#include "thread_ranks.h"

namespace nsp {
namespace {

using at::Tensor;

constexpr Heads kHeads{.query = 4, .kv = 2};

std::shared_ptr<World> make_world(const std::string& group) {
  auto world = std::make_shared<World>();
  world->communicator = make_c10d_communicator(group);
  world->attention = make_cpu_attention();
  return world;
}

// 6 tokens on both ranks, 2 more on rank 0 alone; a second round on rank 1 alone.
Plan two_rounds() {
  return make_plan({.world = 2, .sp_max = 2},
                   {{place(0, 6, {0, 2}), place(1, 2, {0, 1})}, {place(2, 5, {1, 1})}});
}

std::int64_t add(const std::shared_ptr<World>& world,
                 const Plan& plan,
                 const Heads& heads = kHeads) {
  return add_program(std::make_shared<Program>(world, to_json(plan).dump(), heads));
}

Tensor rows(std::int64_t tokens, std::int64_t heads) {
  return at::randn({tokens, heads, 8}, at::kDouble);
}

Tensor differentiable(std::int64_t tokens, std::int64_t heads) {
  return rows(tokens, heads).requires_grad_();
}

void expect_message(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Program, CountsRowsOfEveryRound) {
  test::run_ranks(2, [](int rank, const std::string& group) {
    const Program program(make_world(group), to_json(two_rounds()).dump(), kHeads);
    EXPECT_EQ(program.num_rounds(), 2);
    EXPECT_EQ(program.round(0).tokens, rank == 0 ? 5 : 3);
    EXPECT_EQ(program.round(1).tokens, rank == 0 ? 1 : 5);  // rank 0: the dummy token
    expect_message([&] { program.round(2); }, "round 2: the plan has 2 rounds");
  });
}

TEST(Program, RefusesPlansThatItCannotRun) {
  test::run_ranks(2, [](int, const std::string& group) {
    const auto world = make_world(group);
    const auto refuse = [&](const Plan& plan, const Heads& heads, const std::string& part) {
      expect_message([&] { Program(world, to_json(plan).dump(), heads); }, part);
    };
    Plan plan = two_rounds();
    refuse(plan, {3, 3}, "degree 2: must divide the 3 query heads; allowed degrees are 1");
    refuse(plan, {4, 3}, "kv_heads 3: must divide the 4 query heads");
    plan.rounds[0].placements[0].tokens = 7;
    EXPECT_THROW(Program(world, to_json(plan).dump(), kHeads), BadInput);
    EXPECT_THROW(Program(world, "{", kHeads), BadInput);
    refuse(make_plan({.world = 4}, {{}}), kHeads, "plan.world 4: the process group has 2 ranks");
    plan = make_plan({.world = 2, .token_budget = 3}, {{place(0, 4, {0, 1})}});
    EXPECT_THROW(Program(world, to_json(plan).dump(), kHeads), BadInput);
  });
}

TEST(Attention, RefusesInputsBeforeAnyExchange) {
  test::run_ranks(2, [](int rank, const std::string& group) {
    const auto world = make_world(group);
    const auto handle = add(world, two_rounds());
    const std::int64_t t = rank == 0 ? 5 : 3;
    const auto refuse = [&](const Tensor& q, const Tensor& k, const Tensor& v, const char* part) {
      expect_message([&] { attention(q, k, v, handle, 0, 1.0, 0); }, part);
    };
    const Tensor q = rows(t, 4), kv = rows(t, 2);
    refuse(rows(9, 4), rows(9, 2), rows(9, 2), "q of shape (9, 4, 8): this rank's row holds");
    refuse(q, rows(t, 4), kv, "k of shape");
    refuse(q, kv, kv.narrow(2, 0, 4), "v with head_dim 4");
    refuse(q, kv.to(at::kFloat), kv, "k of Float on cpu: q is Double");
    refuse(q.unsqueeze(0), kv, kv, "q of shape (1, ");
    expect_message([&] { attention(q, kv, kv, handle, 5, 1.0, 0); }, "round 5");
    expect_message([&] { attention(q, kv, kv, handle + 1000, 0, 1.0, 0); }, "handle");
    expect_message([&] { attention(q, kv, kv, handle, 0, 1.0, -1); }, "window -1");
    EXPECT_EQ(world->communicator->exchanges, 0);
    EXPECT_EQ(world->attention_calls, 0);
  });
}

// All ranks refuse, though ranks 0 and 1 have no part in the sequence of 9 tokens.
TEST(Attention, RefusesWindowsThatASequenceOfTheRingExceeds) {
  test::run_ranks(4, [](int, const std::string& group) {
    const auto world = make_world(group);
    const Way ring{.degree = 2, .backend = Backend::kRing, .ulysses_degree = 1};
    const auto handle =
        add(world,
            make_plan({.world = 4, .sp_max = 2}, {{place(0, 9, 2, ring), place(1, 30, {0, 1})}}));
    const Tensor q = rows(find_program(handle)->round(0).tokens, 4), kv = q.narrow(1, 0, 2);
    expect_message([&] { attention(q, kv, kv, handle, 0, 1.0, 8); },
                   "window 8: a sequence of 9 tokens runs on gather, ring or usp");
    EXPECT_EQ(world->communicator->exchanges, 0);
    attention(q, kv, kv, handle, 0, 1.0, 9);
    EXPECT_EQ(world->communicator->exchanges, 1);
  });
}

TEST(Attention, IdleRanksTakePartAndGetZeroOrOwnGradients) {
  test::run_ranks(2, [](int rank, const std::string& group) {
    const auto world = make_world(group);
    const auto handle = add(world, make_plan({.world = 2, .sp_max = 2}, {{place(0, 1, {0, 2})}}));
    const Tensor q = differentiable(1, 4), k = differentiable(1, 2), v = differentiable(1, 2);
    const Tensor out = attention(q, k, v, handle, 0, 1.0, 0);
    // One token, on either rank: it attends to itself, so out is v.
    EXPECT_TRUE(out.equal(v.detach().repeat_interleave(2, 1))) << "rank " << rank;
    torch::autograd::backward({out.sum()});  // an expanded gradient with strides 0
    EXPECT_TRUE(v.grad().allclose(at::ones({1, 2, 8}, at::kDouble).mul(2)));
    EXPECT_LE(q.grad().abs().max().item<double>(), 1e-14);
    EXPECT_LE(k.grad().abs().max().item<double>(), 1e-14);
    EXPECT_EQ(world->communicator->exchanges, 4);
  });
}

TEST(Attention, WithoutGradientsSavesNothingAndCounts) {
  test::run_ranks(2, [](int rank, const std::string& group) {
    const auto world = make_world(group);
    const auto handle = add(world, two_rounds());
    const std::int64_t t = rank == 0 ? 5 : 3;
    const Tensor q = differentiable(t, 4), k = differentiable(t, 2), v = differentiable(t, 2);
    const Tensor with = attention(q, k, v, handle, 0, 1.0, 0);
    const at::NoGradGuard no_grad;
    const Tensor without = attention(q, k, v, handle, 0, 1.0, 0);
    EXPECT_TRUE(with.requires_grad());
    EXPECT_FALSE(without.requires_grad());
    EXPECT_TRUE(with.equal(without));
    EXPECT_EQ(world->attention_calls, 2);
    EXPECT_EQ(find_program(handle)->attention_calls, 2);
    EXPECT_EQ(world->attention->forward_launches, rank == 0 ? 4 : 2);
    world->reset_counters();
    EXPECT_EQ(world->communicator->exchanges, 0);
  });
}

TEST(Attention, BackwardTwiceGivesTheSameAndSecondDerivativesAreRefused) {
  test::run_ranks(2, [](int rank, const std::string& group) {
    const auto handle = add(make_world(group), two_rounds());
    const std::int64_t t = rank == 0 ? 5 : 3;
    const Tensor q = differentiable(t, 4), k = differentiable(t, 2), v = differentiable(t, 2);
    const Tensor out = attention(q, k, v, handle, 0, 1.0, 0);
    const auto gradient = [&](bool create_graph) {
      return torch::autograd::grad({out.sum()}, {k}, {}, true, create_graph)[0];
    };
    EXPECT_TRUE(gradient(false).equal(gradient(false)));
    expect_message([&] { gradient(true); }, "no second derivative");
  });
}

TEST(Attention, SeesInputsChangedInPlace) {
  test::run_ranks(1, [](int, const std::string& group) {
    const auto handle = add(make_world(group), make_plan({.world = 1}, {{place(0, 5, {0, 1})}}));
    const Tensor x = differentiable(5, 4), k = rows(5, 2), v = rows(5, 2);
    const Tensor q = x * 2;
    const Tensor out = attention(q, k, v, handle, 0, 1.0, 0);
    q.mul_(3);
    expect_message([&] { torch::autograd::backward({out.sum()}); }, "modified by an inplace");
    const Tensor again = attention(x * 2, k, v, handle, 0, 1.0, 0);
    again.mul_(3);
    expect_message([&] { torch::autograd::backward({again.sum()}); }, "modified by an inplace");
  });
}

}  // namespace
}  // namespace nsp
