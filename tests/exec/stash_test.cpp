// Scopes and lives of stashes: what is held when, and what is refused.
#include "nsp/exec/stash.h"

#include <functional>
#include <string>
#include <thread>

#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "nsp/base/error.h"
#include "nsp/comm/c10d.h"
#include "nsp/exec/attention.h"
#include "nsp/exec/buffer_bytes.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"
#include "thread_ranks.h"

namespace nsp {
namespace {

using at::Tensor;

constexpr Heads kHeads{.query = 4, .kv = 2};

// One rank, two sequences, of which one is saved.
struct Model {
  explicit Model(const std::string& group, Mark mark = Mark::kSave)
      : world(std::make_shared<World>()) {
    world->communicator = make_c10d_communicator(group);
    world->attention = make_cpu_attention();
    std::vector<Placement> placements = {place(0, 6, {0, 1}), place(1, 3, {0, 1})};
    placements[0].mark = mark;
    const Plan plan = make_plan({.world = 1}, {placements});
    handle = add_program(std::make_shared<Program>(world, to_json(plan).dump(), kHeads));
  }

  Tensor attend(double scale = 1) const { return attention(q, k, v, handle, 0, scale, 0); }

  std::shared_ptr<World> world;
  std::int64_t handle = 0;
  Tensor q = at::randn({9, 4, 8}, at::kDouble).requires_grad_();
  Tensor k = at::randn({9, 2, 8}, at::kDouble).requires_grad_();
  Tensor v = at::randn({9, 2, 8}, at::kDouble).requires_grad_();
};

struct Scope {
  Scope(const std::shared_ptr<Stash>& stash, StashUse use) { enter_stash(stash, use); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  Scope(Scope&&) = delete;
  Scope& operator=(Scope&&) = delete;
  ~Scope() { leave_stash(); }
};

void on_one_rank(const std::function<void(const Model&)>& body) {
  test::run_ranks(1, [&](int, const std::string& group) { body(Model(group)); });
}

void expect_message(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

constexpr std::int64_t kSavedBytes = 6 * 4 * (8 * 8 + 8);  // rows, heads, out and log-sum-exp

constexpr std::int64_t kOutputBytes = 6 * 4 * 8 * 8;

TEST(Stash, HoldsNothingOutsideOfCheckpointing) {
  on_one_rank([](const Model& model) {
    torch::autograd::backward({model.attend().sum()});
    EXPECT_EQ(model.world->stash.most, 0);
    EXPECT_EQ(model.world->attention->forward_launches, 2);
  });
}

TEST(Stash, HoldsWhatTheFormulaSaysUntilItIsGone) {
  on_one_rank([](const Model& model) {
    auto stash = std::make_shared<Stash>();
    {
      const Scope scope(stash, StashUse::kRecord);
      model.attend();
    }
    EXPECT_EQ(stash->bytes(), kSavedBytes);
    EXPECT_EQ(stash_bytes(find_program(model.handle)->round(0), kHeads, {8, 8}), kSavedBytes);
    EXPECT_EQ(model.world->stash.held, kSavedBytes);
    stash.reset();
    EXPECT_EQ(model.world->stash.held, 0);
    EXPECT_EQ(model.world->stash.most, kSavedBytes);
  });
}

TEST(Stash, IsReplayedAsOftenAsBackwardRunsAndOnAnyThread) {
  on_one_rank([](const Model& model) {
    const auto stash = std::make_shared<Stash>();
    const auto pass = [&](StashUse use) {
      const Scope scope(stash, use);
      return model.attend();
    };
    const Tensor first = pass(StashUse::kRecord);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(pass(StashUse::kReplay).equal(first));
    }
    Tensor other;
    std::thread([&] { other = pass(StashUse::kReplay); }).join();
    EXPECT_TRUE(other.equal(first));
    EXPECT_EQ(model.world->attention->forward_launches, 2 + 3);  // the short sequence each time
  });
}

TEST(Stash, ABackwardThatIsUnderWayKeepsItsOwn) {
  on_one_rank([](const Model& model) {
    auto stash = std::make_shared<Stash>();
    const auto pass = [&](StashUse use) {
      const Scope scope(stash, use);
      return model.attend();
    };
    const auto gradient = [&](const Tensor& out) {
      return torch::autograd::grad({out.square().sum()}, {model.k})[0];
    };
    const Tensor expected = gradient(model.attend());
    pass(StashUse::kRecord);
    const Tensor out = pass(StashUse::kReplay);
    stash = std::make_shared<Stash>();
    EXPECT_EQ(model.world->stash.held, kSavedBytes);  // held by the graph of `out`
    EXPECT_TRUE(gradient(out).equal(expected));
    EXPECT_EQ(model.world->stash.held, 0);
  });
}

TEST(Stash, OffloadedOutputIsOnTheHostUntilItIsGone) {
  test::run_ranks(1, [](int, const std::string& group) {
    const Model model(group, Mark::kOffload);
    auto stash = std::make_shared<Stash>();
    {
      const Scope scope(stash, StashUse::kRecord);
      model.attend();
    }
    EXPECT_EQ(model.world->stash.held, kSavedBytes - kOutputBytes);  // the log-sum-exp
    EXPECT_EQ(model.world->offloaded.held, kOutputBytes);
    stash.reset();
    EXPECT_EQ(model.world->stash.held, 0);
    EXPECT_EQ(model.world->offloaded.held, 0);
    EXPECT_EQ(model.world->offloaded.most, kOutputBytes);
  });
}

TEST(Stash, RefusesAnotherCallThanTheRecordedOne) {
  on_one_rank([](const Model& model) {
    const auto stash = std::make_shared<Stash>();
    {
      const Scope scope(stash, StashUse::kRecord);
      model.attend();
    }
    const Scope scope(stash, StashUse::kReplay);
    expect_message([&] { model.attend(0.5); }, "calls it otherwise");
    expect_message([&] { model.attend(); }, "calls it otherwise");  // one more than recorded
  });
  expect_message(leave_stash, "entered none");
}

TEST(Stash, InnerScopesHideOuterOnes) {
  on_one_rank([](const Model& model) {
    const auto outer = std::make_shared<Stash>(), inner = std::make_shared<Stash>();
    const Scope around(outer, StashUse::kRecord);
    {
      const Scope within(inner, StashUse::kRecord);
      model.attend();
    }
    EXPECT_EQ(outer->bytes(), 0);
    EXPECT_EQ(inner->bytes(), kSavedBytes);
  });
}

TEST(Stash, RecordsWithoutGradientsToo) {
  on_one_rank([](const Model& model) {
    const auto stash = std::make_shared<Stash>();
    const at::NoGradGuard frozen;
    {
      const Scope scope(stash, StashUse::kRecord);
      model.attend();
    }
    const Scope scope(stash, StashUse::kReplay);
    model.attend();
    EXPECT_EQ(model.world->attention->forward_launches, 3);
  });
}

}  // namespace
}  // namespace nsp
