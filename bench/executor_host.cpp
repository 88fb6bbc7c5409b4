// Host time of the executor itself: the operator on the CPU over a plan of a few rows, with an
// exchange that moves nothing and a kernel that computes nothing.
//
//   executor_host [repeats]
//
// One JSON line a case: least and median microseconds of a forward and of a backward pass, and the
// calls of ATen's dispatcher in each by name (on a GPU all but those of empty tensors are
// launches). The time of launches, copies and collectives comes on top there
// (bench/attention_layer.py).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include "../tests/exec/recorder.h"
#include "nsp/exec/attention.h"
#include "nsp/exec/program.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"

namespace {

using at::Tensor;

struct Arrived final : nsp::Pending {
  explicit Arrived(Tensor received) : rows(std::move(received)) {}
  Tensor wait() override { return std::move(rows); }
  Tensor rows;
};

class Nowhere final : public nsp::Communicator {
 public:
  std::int32_t rank() const override { return 0; }
  std::int32_t size() const override { return 4; }
  std::unique_ptr<nsp::Pending> exchange(Tensor rows,
                                         std::vector<std::int64_t>,
                                         std::vector<std::int64_t> receive_counts,
                                         const nsp::Purpose&) override {
    auto shape = rows.sizes().vec();
    shape[0] = 0;
    for (const std::int64_t count : receive_counts) {
      shape[0] += count;
    }
    return std::make_unique<Arrived>(at::empty(shape, rows.options()));
  }
};

nsp::Plan plan_of(const std::vector<std::int32_t>& degrees) {
  std::vector<nsp::Placement> placements;
  for (const std::int32_t degree : degrees) {
    for (std::int64_t tokens = 3 * degree; tokens > 0; tokens -= degree) {
      const auto sequence = static_cast<std::int64_t>(placements.size());
      placements.push_back(nsp::place(sequence, tokens, {0, degree}));
    }
  }
  return nsp::make_plan({.world = 4, .sp_max = 4}, {placements});
}

// Dispatcher calls by name while it lives.
class Calls {
 public:
  Calls()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(count).scopes({at::RecordScope::FUNCTION}))) {
    counts().clear();
  }
  ~Calls() { at::removeCallback(handle_); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  Calls(Calls&&) = delete;
  Calls& operator=(Calls&&) = delete;

  std::string json() const {
    std::string text;
    for (const auto& [name, calls] : counts()) {
      text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", name, calls);
    }
    return "{" + text + "}";
  }

 private:
  static std::map<std::string, int>& counts() {
    static std::map<std::string, int> instance;
    return instance;
  }
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name.starts_with("aten::")) {
      ++counts()[name.substr(6)];
    }
    return nullptr;
  }

  at::CallbackHandle handle_;
};

template <class Run>
std::string calls_of(const Run& run) {
  const Calls calls;
  run();
  return calls.json();
}

template <class Run>
std::string microseconds(int repeats, const Run& run) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  std::ranges::sort(times);
  return fmt::format("[{:.1f}, {:.1f}]", times.front(), times[times.size() / 2]);
}

void measure(const std::string& name,
             const std::vector<std::int32_t>& degrees,
             const nsp::Heads& heads,
             int repeats,
             std::int32_t reach = 1) {
  auto world = std::make_shared<nsp::World>();
  world->attention = std::make_unique<nsp::test::NoAttention>();
  world->communicator = std::make_unique<Nowhere>();
  if (reach > 1) {
    world->communicator->peers = std::make_unique<nsp::test::IdlePeers>(0, reach, 1);
  }
  const auto program =
      std::make_shared<nsp::Program>(world, to_json(plan_of(degrees)).dump(), heads);
  const std::int64_t tokens = program->round(0).tokens;
  const auto handle = nsp::add_program(program);
  const auto rows = [&](std::int64_t count) {
    return at::zeros({tokens, count, 128}, at::kBFloat16).requires_grad_();
  };
  const Tensor q = rows(heads.query), k = rows(heads.kv), v = rows(heads.kv);
  const Tensor dout = at::zeros({tokens, heads.query, 128}, at::kBFloat16);
  Tensor out;
  const auto forward = [&] { out = nsp::attention(q, k, v, handle, 0, 1.0, 0); };
  const auto backward = [&] { torch::autograd::grad({out}, {q, k, v}, {dout}, true); };
  const std::string forward_us = microseconds(repeats, forward);
  const std::string backward_us = microseconds(repeats, backward);
  fmt::print(
      R"({{"case": "{}", "forward_us": {}, "backward_us": {}, )", name, forward_us, backward_us);
  fmt::print(R"("forward_calls": {}, "backward_calls": {}}})"
             "\n",
             calls_of(forward),
             calls_of(backward));
  nsp::release_program(handle);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 2000;
  measure("leaf only", {1}, {32, 4}, repeats);
  measure("one level and leaf", {2, 1}, {32, 4}, repeats);
  measure("two levels and leaf", {4, 2, 1}, {32, 4}, repeats);
  measure("one level and leaf, copied KV heads", {4, 1}, {32, 2}, repeats);
  measure("one level and leaf, peer copies", {2, 1}, {32, 4}, repeats, 2);
}
