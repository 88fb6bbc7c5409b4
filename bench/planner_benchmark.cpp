// Planning time by ranks (8 ... 16,384) and sequences (64 ... 65,536), on lengths of the Wikipedia
// trace (repeated where it ends), 30B, sp_max 32, 8 ranks a host.
//
//   planner_benchmark TRACE [--benchmark_filter=default] [--benchmark_out=FILE ...]
//
// Names: plan/<planner>/<effort>/ranks:R/sequences:N. Counters: gap in %, rounds.
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "nsp/cost/make_profile.h"
#include "nsp/planner/planner.h"
#include "nsp/workload/trace.h"

namespace nsp {
namespace {

constexpr std::int64_t kMaxLength = 196608;
constexpr std::int64_t kFewest = 4;  // sequences a rank: below, the longest one is all there is

std::vector<std::int64_t> lengths_of(const std::vector<std::int64_t>& trace, std::int64_t count) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; std::ssize(lengths) < count; i = (i + 1) % trace.size()) {
    if (trace[i] <= kMaxLength) {
      lengths.push_back(trace[i]);
    }
  }
  return lengths;
}

void plan_batch(benchmark::State& state, PlanRequest request) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  const Profile profile = find_profile(shape, "h200");
  request.sp_max = std::min(request.world, 32);
  Plan last;
  for (auto _ : state) {
    last = plan(request, shape, profile).plan;
  }
  const double load = last.predicted.forward + last.predicted.backward;
  state.counters["gap_%"] = 100 * (load / last.bound_seconds - 1);
  state.counters["rounds"] = static_cast<double>(last.rounds.size());
}

void add(const std::vector<std::int64_t>& trace,
         const std::string& planner,
         const std::string& effort,
         std::int32_t ranks,
         std::int64_t sequences) {
  const std::string name =
      fmt::format("plan/{}/{}/ranks:{}/sequences:{}", planner, effort, ranks, sequences);
  PlanRequest request{.lengths = lengths_of(trace, sequences),
                      .world = ranks,
                      .planner = planner,
                      .effort = effort};
  const std::int64_t tokens =
      std::accumulate(request.lengths.begin(), request.lengths.end(), std::int64_t{0});
  // The longest one may need more than 1.2 x mean in a large world of short sequences.
  request.token_budget = std::max(tokens / ranks * 6 / 5, kMaxLength / std::min(ranks, 32)) + 1;
  benchmark::RegisterBenchmark(name.c_str(), plan_batch, request)->Unit(benchmark::kMillisecond);
}

void add_all(const std::vector<std::int64_t>& trace) {
  for (const char* effort : {"fast", "default", "thorough"}) {
    for (const std::int32_t ranks : {8, 64, 512, 1024, 4096, 16384}) {
      for (std::int64_t sequences = 64; sequences <= 65536; sequences *= 4) {
        if (sequences >= kFewest * ranks) {
          add(trace, "nsp", effort, ranks, sequences);
        }
      }
    }
  }
  add(trace, "algorithm1", "default", 64, 2048);
}

}  // namespace
}  // namespace nsp

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (count != 2) {
    std::fprintf(stderr, "usage: planner_benchmark TRACE [--benchmark_... options]\n");
    return 2;
  }
  nsp::add_all(nsp::load_lengths(arguments[1]));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
