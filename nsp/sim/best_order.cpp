#include "nsp/sim/best_order.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "nsp/plan/issue_order.h"
#include "nsp/sim/leaf_split.h"
#include "nsp/sim/wave_split.h"

namespace nsp {
namespace {

constexpr std::int64_t kLeastGain = 512;
constexpr std::int64_t kMostHalves = 8;

struct Candidate {
  std::vector<LevelWave> waves{};  // exchanged, in order of their compute
  std::size_t leaf = 0;            // waves before the leaves
  bool one_ahead = false;          // prologues: all first, or one wave ahead
  std::int64_t halves = 0;         // of the first prologue that a part of the leaves hides
  std::vector<LevelCut> cuts{};
};

std::vector<Issue> order_of(const Candidate& candidate) {
  const std::size_t count = candidate.waves.size();
  const std::size_t early = candidate.one_ahead ? std::min<std::size_t>(1, count) : count;
  std::vector<Issue> order;
  const auto issue = [&](Phase phase, std::size_t i) {
    const auto& [degree, wave] = candidate.waves[i];
    order.push_back({phase, degree, wave});
  };
  std::size_t sent = 0;
  const auto send_until = [&](std::size_t until) {
    for (; sent < std::min(until, count); ++sent) {
      issue(Phase::kPrologue, sent);
    }
  };
  send_until(early);
  for (std::size_t i = 0; i <= count; ++i) {
    if (i == candidate.leaf) {
      order.push_back({Phase::kCompute, 1});
    }
    if (i < count) {
      send_until(i + 2);
      issue(Phase::kCompute, i);
      issue(Phase::kEpilogue, i);
    }
  }
  return order;
}

// The wave at this place, a whole level, in two.
Candidate cut_at(const Candidate& whole, std::size_t place, std::int64_t tokens, bool short_first) {
  Candidate cut = whole;
  const std::int32_t degree = whole.waves[place].degree;
  cut.waves[place].wave = short_first ? Wave::kShort : Wave::kLong;
  cut.waves.insert(cut.waves.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                   {degree, short_first ? Wave::kLong : Wave::kShort});
  cut.leaf += whole.leaf > place ? 1 : 0;
  cut.cuts.push_back({.degree = degree, .tokens = tokens});
  std::ranges::sort(cut.cuts, std::greater<>(), &LevelCut::degree);
  return cut;
}

class OrderSearch {
 public:
  OrderSearch(const CostModel& model, const Round& round, std::int32_t world, std::int32_t most)
      : times_(round_times(model, round, world)),
        leaves_(model, round, world),
        waves_(model, round, times_),
        most_(most) {
    best_.order = default_order(round);
    best_.leaf_first.assign(times_.dense.size(), 0);
    best_.time = simulate_layers(times_, best_.order, kOrderLayers);
    best_.tried = 1;
    base_ = {.waves = exchanged_waves(round)};
  }

  ChosenOrder run() {
    if (base_.waves.empty()) {
      return std::move(best_);  // nothing to order
    }
    const std::int64_t least = best_.time.sum() / kLeastGain;
    ChosenOrder chosen = best_;
    search();
    take_if_gains(least, chosen);
    if (most_ > 1) {
      most_ = best_.tried + kMostCutOrders;
      cut();
      take_if_gains(least, chosen);
    }
    chosen.tried = best_.tried;
    return chosen;
  }

 private:
  void take_if_gains(std::int64_t least, ChosenOrder& chosen) const {
    if (chosen.time.sum() - best_.time.sum() > least) {
      chosen = best_;
    }
  }

  void search() {
    for (const auto& waves : sequences()) {
      for (const bool one_ahead : {false, true}) {
        for (const std::size_t leaf : leaf_places()) {
          attempt({.waves = waves, .leaf = leaf, .one_ahead = one_ahead});
        }
        attempt({.waves = waves, .leaf = waves.size(), .one_ahead = one_ahead, .halves = 2});
      }
    }
    while (improve()) {
    }
  }

  // Ends of the order are where communication is exposed. A level that is both is cut once.
  void cut() {
    cut_level(0, true);
    cut_level(base_.waves.size() - 1, false);
    while (!base_.cuts.empty() && improve()) {
    }
  }

  void cut_level(std::size_t place, bool short_first) {
    const Candidate whole = base_;
    const std::int32_t degree = whole.waves[place].degree;
    if (std::ranges::find(whole.cuts, degree, &LevelCut::degree) != whole.cuts.end()) {
      return;
    }
    for (const std::int64_t tokens : waves_.lengths(degree)) {
      attempt(cut_at(whole, place, tokens, short_first));
    }
  }

  RoundTimes times_of(const Candidate& candidate, std::vector<std::int32_t>& leaf_first) const {
    RoundTimes times = waves_.times(candidate.cuts);
    leaf_first = leaves_.leaf_first(times, candidate.waves, candidate.halves);
    return leaves_.times(std::move(times), leaf_first);
  }

  bool attempt(const Candidate& candidate) {
    if (best_.tried >= most_) {
      return false;
    }
    ++best_.tried;
    std::vector<Issue> order = order_of(candidate);
    std::vector<std::int32_t> leaf_first(times_.dense.size(), 0);
    const LayerTime time =
        candidate.halves == 0 && candidate.cuts.empty()
            ? simulate_layers(times_, order, kOrderLayers)
            : simulate_layers(times_of(candidate, leaf_first), order, kOrderLayers);
    if (time.sum() >= best_.time.sum()) {
      return false;
    }
    best_.order = std::move(order);
    best_.leaf_first = std::move(leaf_first);
    best_.cuts = candidate.cuts;
    best_.time = time;
    base_ = candidate;
    return true;
  }

  // One better neighbour of the best.
  bool improve() {
    const Candidate from = base_;
    for (std::size_t i = 0; i + 1 < from.waves.size(); ++i) {
      Candidate swapped = from;
      std::swap(swapped.waves[i], swapped.waves[i + 1]);
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
    if (moved.leaf <= from.waves.size() && attempt(moved)) {
      return true;
    }
    moved.leaf = from.leaf - 1;
    return from.leaf > 0 && attempt(moved);
  }

  std::vector<std::vector<LevelWave>> sequences() const {
    const std::vector<LevelWave>& down = base_.waves;
    std::vector<std::vector<LevelWave>> all = {down, {down.rbegin(), down.rend()}};
    for (const bool communication : {true, false}) {
      std::vector<LevelWave>& dearest = all.emplace_back(down);
      std::ranges::stable_sort(dearest, std::greater<>(), [&](const LevelWave& wave) {
        return largest(wave, communication);
      });
    }
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }

  std::vector<std::size_t> leaf_places() const {
    std::vector<std::size_t> places = {0, 1, base_.waves.size()};
    places.erase(std::ranges::unique(places).begin(), places.end());
    return places;
  }

  // Nanoseconds of a level's dearest node.
  std::int64_t largest(const LevelWave& wave, bool communication) const {
    std::int64_t most = 0;
    for (const NodeTimes& node : times_.levels[place_of(times_.levels, wave)].nodes) {
      const PhaseCost& cost = node.cost;
      most = std::max(
          most, communication ? cost.prologue.sum() + cost.epilogue.sum() : cost.compute.sum());
    }
    return most;
  }

  RoundTimes times_;
  LeafSplit leaves_;
  WaveSplit waves_;
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

void set_order(ChosenOrder chosen, Schedule& schedule) {
  schedule.order = std::move(chosen.order);
  schedule.leaf_first = std::move(chosen.leaf_first);
  schedule.cuts = std::move(chosen.cuts);
}

}  // namespace nsp
