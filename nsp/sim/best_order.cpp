#include "nsp/sim/best_order.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "nsp/plan/issue_order.h"
#include "nsp/sim/leaf_split.h"

namespace nsp {
namespace {

constexpr std::int64_t kLeastGain = 512;
constexpr std::int64_t kMostHalves = 8;

struct Candidate {
  std::vector<std::int32_t> degrees{};  // exchanged levels in order of their compute
  std::size_t leaf = 0;                 // levels before the leaves
  bool one_ahead = false;               // prologues: all first, or one level ahead
  std::int64_t halves = 0;              // of the first prologue that a part of the leaves hides
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
  OrderSearch(const CostModel& model, const Round& round, std::int32_t world, std::int32_t most)
      : times_(round_times(model, round, world)), split_(model, round, times_), most_(most) {
    best_.order = default_order(round);
    best_.leaf_first.assign(times_.dense.size(), 0);
    best_.time = simulate_layers(times_, best_.order, kOrderLayers);
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
    return {.order = usual.order,
            .leaf_first = usual.leaf_first,
            .time = usual.time,
            .tried = best_.tried};
  }

 private:
  void search() {
    for (const auto& degrees : sequences()) {
      for (const bool one_ahead : {false, true}) {
        for (const std::size_t leaf : leaf_places()) {
          attempt({.degrees = degrees, .leaf = leaf, .one_ahead = one_ahead});
        }
        attempt({.degrees = degrees, .leaf = degrees.size(), .one_ahead = one_ahead, .halves = 2});
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
    std::vector<std::int32_t> leaf_first = split_.leaf_first(candidate.degrees, candidate.halves);
    const LayerTime time = candidate.halves == 0
                               ? simulate_layers(times_, order, kOrderLayers)
                               : simulate_layers(split_.times(leaf_first), order, kOrderLayers);
    if (time.sum() >= best_.time.sum()) {
      return false;
    }
    best_.order = std::move(order);
    best_.leaf_first = std::move(leaf_first);
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
    for (const std::int64_t halves : {from.halves - 1, from.halves + 1, 2 * from.halves}) {
      Candidate cut = from;
      cut.halves = halves;
      if (halves >= 0 && halves <= kMostHalves && attempt(cut)) {
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

  RoundTimes times_;
  LeafSplit split_;
  std::int32_t most_;
  Candidate base_;
  ChosenOrder best_;
};

}  // namespace

ChosenOrder best_order(const CostModel& model,
                       const Round& round,
                       std::int32_t world,
                       std::int32_t most) {
  return OrderSearch(model, round, world, most).run();
}

}  // namespace nsp
