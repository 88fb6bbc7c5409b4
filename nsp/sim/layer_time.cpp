#include "nsp/sim/layer_time.h"

#include <algorithm>
#include <span>

namespace nsp {
namespace {

using Nanoseconds = std::vector<std::int64_t>;

// Where the queues of each rank stand, and when each level's latest phase was done.
class Walk {
 public:
  Walk(const RoundTimes& times, bool backward, bool serial)
      : times_(times),
        backward_(backward),
        serial_(serial),
        world_(times.dense.size()),
        compute_(world_, 0),
        exchange_(serial ? 0 : world_, 0),
        done_(times.levels.size() * world_, 0) {}

  void issue(Phase phase, std::size_t level) {
    const LevelTimes& at = times_.levels[level];
    const auto degree = static_cast<std::size_t>(at.degree);
    for (std::size_t node = 0; node < at.nodes.size(); ++node) {
      if (!at.nodes[node].active) {
        continue;
      }
      const std::int64_t cost = pass_of(phase_of(at.nodes[node].cost, phase), backward_);
      const std::span<std::int64_t> done(&done_[level * world_ + node * degree], degree);
      if (phase == Phase::kCompute) {
        compute(node * degree, done, cost);
      } else {
        exchange(node * degree, done, cost);
      }
    }
  }

  // Before everything else on the compute queue, beside which prologues may travel.
  void run_leaf_first() {
    for (std::size_t rank = 0; rank < times_.leaf_first.size(); ++rank) {
      compute_[rank] += pass_of(times_.leaf_first[rank].cost.compute, backward_);
    }
  }

  // The dense part of every rank; the next layer's phases come after it.
  void end_layer() {
    for (std::size_t rank = 0; rank < world_; ++rank) {
      std::int64_t& now = compute_[rank];
      now = std::max(now, serial_ ? 0 : exchange_[rank]) + pass_of(times_.dense[rank], backward_);
    }
    meet_experts();
    std::int64_t begun = 0;
    for (std::size_t rank = 0; rank < world_; ++rank) {
      std::int64_t& now = compute_[rank];
      last_ = std::max(last_, now);
      now = std::max(now, all_begun_);
      begun = std::max(begun, now);
      for (std::size_t level = 0; level < times_.levels.size(); ++level) {
        done_[level * world_ + rank] = now;
      }
    }
    all_begun_ = begun;
  }

  // When the last rank was done with the latest layer.
  std::int64_t end() const { return last_; }

 private:
  void meet_experts() {
    const auto ep = static_cast<std::size_t>(times_.ep);
    for (std::size_t group = 0; group < times_.experts.size(); ++group) {
      const std::span<std::int64_t> ranks(&compute_[group * ep], ep);
      std::ranges::fill(ranks, std::ranges::max(ranks) + pass_of(times_.experts[group], backward_));
    }
  }

  void compute(std::size_t first, std::span<std::int64_t> done, std::int64_t cost) {
    for (std::size_t i = 0; i < done.size(); ++i) {
      std::int64_t& free = compute_[first + i];
      free = std::max(free, done[i]) + cost;
      done[i] = free;
    }
  }

  // Serial: the one queue of a rank is the compute queue.
  void exchange(std::size_t first, std::span<std::int64_t> done, std::int64_t cost) {
    Nanoseconds& queue = serial_ ? compute_ : exchange_;
    const std::span<std::int64_t> free(&queue[first], done.size());
    const std::int64_t end = std::max(std::ranges::max(free), std::ranges::max(done)) + cost;
    std::ranges::fill(free, end);
    std::ranges::fill(done, end);
  }

  const RoundTimes& times_;
  bool backward_;
  bool serial_;
  std::size_t world_;
  std::int64_t last_ = 0;
  std::int64_t all_begun_ = 0;  // when the last rank began the latest layer
  Nanoseconds compute_;         // by rank: when the queue is free
  Nanoseconds exchange_;        // by rank
  Nanoseconds done_;            // by level and rank
};

std::int64_t walked(const RoundTimes& times,
                    const std::vector<Issue>& order,
                    std::int32_t layers,
                    bool backward,
                    bool serial) {
  Walk walk(times, backward, serial);
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    walk.run_leaf_first();
    for (const Issue& issue : order) {
      walk.issue(issue.phase, place_of(times.levels, level_of(issue)));
    }
    walk.end_layer();
  }
  return walk.end();
}

}  // namespace

LayerTime simulate_layers(const RoundTimes& times,
                          const std::vector<Issue>& order,
                          std::int32_t layers) {
  return {.forward = walked(times, order, layers, false, false),
          .backward = walked(times, order, layers, true, false)};
}

LayerTime simulate_layer(const RoundTimes& times, const std::vector<Issue>& order) {
  return simulate_layers(times, order, 1);
}

LayerTime simulate_serial_layer(const RoundTimes& times) {
  const std::vector<Issue> order = serial_order(times.levels);
  return {.forward = walked(times, order, 1, false, true),
          .backward = walked(times, order, 1, true, true)};
}

}  // namespace nsp
