#include "nsp/sim/wave_split.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nsp {
namespace {

bool every(const Placement&, SequenceCost&) {
  return true;
}

// What a node runs in order, shortest first, until what it has run hides the traffic of the rest.
struct NodeCut {
  std::int64_t work = 0;     // of the sequences so far
  std::int64_t traffic = 0;  // in front of those to come
  std::int64_t enough = 0;   // tokens of the last one needed; 0: not yet
  std::int64_t longest = 0;

  void run(std::int64_t tokens, const SequenceCost& cost) {
    work += cost.compute.sum();
    traffic -= cost.prologue.sum();
    if (enough == 0 && work >= traffic) {
      enough = tokens;
    }
    longest = tokens;
  }
};

}  // namespace

WaveSplit::WaveSplit(const CostModel& model, const Round& round, const RoundTimes& times)
    : model_(model), times_(times) {
  for (const LevelTimes& at : times.levels) {
    Round& level = levels_.emplace_back();
    std::ranges::copy_if(
        round.placements, std::back_inserter(level.placements), [&](const Placement& p) {
          return p.node.degree > 1 && p.node.degree == at.degree;
        });
    std::ranges::stable_sort(level.placements, {}, &Placement::tokens);
  }
}

const Round& WaveSplit::level(std::int32_t degree) const {
  return levels_[place_of(times_.levels, {.degree = degree})];
}

// Of all nodes that could be cut there; 0: none is.
std::int64_t WaveSplit::hiding_length(std::int32_t degree) const {
  const std::vector<Placement>& placements = level(degree).placements;
  std::vector<NodeCut> nodes(times_.dense.size() / static_cast<std::size_t>(degree));
  const auto node_of = [&](const Placement& p) -> NodeCut& {
    return nodes[static_cast<std::size_t>(p.node.first_rank / degree)];
  };
  std::vector<SequenceCost> costs;
  for (const Placement& p : placements) {
    costs.push_back(model_.sequence(p.tokens, way_of(p)));
    node_of(p).traffic += costs.back().prologue.sum();
  }
  for (std::size_t i = 0; i < placements.size(); ++i) {
    node_of(placements[i]).run(placements[i].tokens, costs[i]);
  }
  std::int64_t length = 0;
  for (const NodeCut& node : nodes) {
    length = node.enough < node.longest ? std::max(length, node.enough) : length;
  }
  return length;
}

std::vector<std::int64_t> WaveSplit::lengths(std::int32_t degree) const {
  const std::vector<Placement>& placements = level(degree).placements;
  const std::int64_t longest = placements.back().tokens;
  const auto end = std::ranges::lower_bound(placements, longest, {}, &Placement::tokens);
  if (end == placements.begin()) {
    return {};
  }
  std::vector<std::int64_t> lengths = {
      placements.front().tokens, hiding_length(degree), std::prev(end)->tokens};
  std::ranges::sort(lengths);
  lengths.erase(std::ranges::unique(lengths).begin(), lengths.end());
  std::erase_if(lengths, [&](std::int64_t length) {
    return length < placements.front().tokens || length >= longest;
  });
  return lengths;
}

RoundTimes WaveSplit::times(const std::vector<LevelCut>& cuts) const {
  RoundTimes result = times_;
  for (const LevelCut& cut : cuts) {
    Round alone = level(cut.degree);
    alone.schedule.cuts = {cut};
    const auto world = static_cast<std::int32_t>(times_.dense.size());
    std::vector<LevelTimes> waves = level_times(model_, alone, world, every);
    const auto at = result.levels.begin() +
                    static_cast<std::ptrdiff_t>(place_of(result.levels, {.degree = cut.degree}));
    *at = std::move(waves[0]);
    result.levels.insert(at + 1, std::move(waves[1]));
  }
  return result;
}

}  // namespace nsp
