#include "nsp/sim/best_order.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "nsp/plan/issue_order.h"

namespace nsp {
namespace {

constexpr std::int64_t kLeastGain = 512;

struct Candidate {
  std::vector<std::int32_t> degrees{};  // exchanged levels in order of their compute
  std::size_t leaf = 0;                 // levels before the leaves
  bool one_ahead = false;               // prologues: all first, or one level ahead
};

std::vector<Issue> order_of(const Candidate& candidate) {
  const std::size_t levels = candidate.degrees.size();
  const std::size_t early = candidate.one_ahead ? std::min<std::size_t>(1, levels) : levels;
  std::vector<Issue> order;
  std::size_t sent = 0;
  const auto send_until = [&](std::size_t count) {
    for (; sent < std::min(count, levels); ++sent) {
      order.push_back({Phase::kPrologue, candidate.degrees[sent]});
    }
  };
  send_until(early);
  for (std::size_t i = 0; i <= levels; ++i) {
    if (i == candidate.leaf) {
      order.push_back({Phase::kCompute, 1});
    }
    if (i < levels) {
      send_until(i + 2);
      order.push_back({Phase::kCompute, candidate.degrees[i]});
      order.push_back({Phase::kEpilogue, candidate.degrees[i]});
    }
  }
  return order;
}

class OrderSearch {
 public:
  OrderSearch(const RoundTimes& times, const Round& round, std::int32_t most)
      : times_(times), most_(most) {
    best_.order = default_order(round);
    best_.time = simulate_layers(times, best_.order, kOrderLayers);
    best_.tried = 1;
    base_ = {.degrees = exchanged_degrees(round)};
  }

  ChosenOrder run() {
    if (base_.degrees.empty()) {
      return std::move(best_);  // nothing to order
    }
    const ChosenOrder usual = best_;
    search();
    const std::int64_t least = usual.time.sum() / kLeastGain;
    if (usual.time.sum() - best_.time.sum() > least) {
      return std::move(best_);
    }
    return {.order = usual.order, .time = usual.time, .tried = best_.tried};
  }

 private:
  void search() {
    for (const auto& degrees : sequences()) {
      for (const std::size_t leaf : leaf_places()) {
        for (const bool one_ahead : {false, true}) {
          attempt({.degrees = degrees, .leaf = leaf, .one_ahead = one_ahead});
        }
      }
    }
    while (improve()) {
    }
  }

  bool attempt(const Candidate& candidate) {
    if (best_.tried >= most_) {
      return false;
    }
    ++best_.tried;
    std::vector<Issue> order = order_of(candidate);
    const LayerTime time = simulate_layers(times_, order, kOrderLayers);
    if (time.sum() >= best_.time.sum()) {
      return false;
    }
    best_.order = std::move(order);
    best_.time = time;
    base_ = candidate;
    return true;
  }

  // One better neighbour of the best.
  bool improve() {
    const Candidate from = base_;
    for (std::size_t i = 0; i + 1 < from.degrees.size(); ++i) {
      Candidate swapped = from;
      std::swap(swapped.degrees[i], swapped.degrees[i + 1]);
      if (attempt(swapped)) {
        return true;
      }
    }
    Candidate moved = from;
    moved.leaf = from.leaf + 1;
    if (moved.leaf <= from.degrees.size() && attempt(moved)) {
      return true;
    }
    moved.leaf = from.leaf - 1;
    return from.leaf > 0 && attempt(moved);
  }

  std::vector<std::vector<std::int32_t>> sequences() const {
    const std::vector<std::int32_t>& down = base_.degrees;
    std::vector<std::vector<std::int32_t>> all = {down, {down.rbegin(), down.rend()}};
    for (const bool communication : {true, false}) {
      std::vector<std::int32_t>& dearest = all.emplace_back(down);
      std::ranges::stable_sort(dearest, std::greater<>(), [&](std::int32_t degree) {
        return largest(degree, communication);
      });
    }
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }

  std::vector<std::size_t> leaf_places() const {
    std::vector<std::size_t> places = {0, 1, base_.degrees.size()};
    places.erase(std::ranges::unique(places).begin(), places.end());
    return places;
  }

  // Nanoseconds of a level's dearest node.
  std::int64_t largest(std::int32_t degree, bool communication) const {
    std::int64_t most = 0;
    for (const NodeTimes& node : times_.levels[level_of(times_.levels, degree)].nodes) {
      const PhaseCost& cost = node.cost;
      most = std::max(
          most, communication ? cost.prologue.sum() + cost.epilogue.sum() : cost.compute.sum());
    }
    return most;
  }

  const RoundTimes& times_;
  std::int32_t most_;
  Candidate base_;
  ChosenOrder best_;
};

}  // namespace

ChosenOrder best_order(const RoundTimes& times, const Round& round, std::int32_t most) {
  return OrderSearch(times, round, most).run();
}

ChosenOrder best_order(const CostModel& model, const Round& round, std::int32_t world) {
  return best_order(round_times(model, round, world), round);
}

}  // namespace nsp
