#include "nsp/planner/cost_table.h"

#include <bit>

namespace nsp {

CostTable::CostTable(const Problem& problem)
    : CostTable(problem, problem.model->allowed_ways(problem.sp_max, problem.backends)) {}

CostTable::CostTable(const Problem& problem, const std::vector<Way>& ways) : problem_(problem) {
  for (const Way& way : ways) {
    const auto level = std::countr_zero(static_cast<unsigned>(way.degree));
    const WayFixed fixed = problem.model->way_fixed(way);
    Passes exchanges = fixed.prologue;
    exchanges += fixed.epilogue;
    while (by_level_.size() <= static_cast<std::size_t>(level)) {
      by_level_.push_back(by_level_.empty() ? WayRange{} : by_level_.back());
    }
    WayRange& range = by_level_[static_cast<std::size_t>(level)];
    if (range.end == ways_.size() && !ways_.empty() && ways_.back().way.degree != way.degree) {
      range.begin = ways_.size();
    }
    range.end = ways_.size() + 1;
    ways_.push_back({.way = way,
                     .level = static_cast<std::size_t>(level),
                     .fixed = fixed,
                     .exchanges = exchanges});
  }
  shares_.resize(problem.sequences.size() * ways_.size());
  known_.assign(shares_.size(), 0);
}

const NodeShare& CostTable::find(std::size_t sequence, std::size_t way) {
  const std::size_t cell = sequence * ways_.size() + way;
  known_[cell] = 1;
  const std::vector<Sequence>& sequences = problem_.sequences;
  const std::int64_t tokens = sequences[sequence].tokens;
  const std::size_t before = cell - ways_.size();
  if (sequence > 0 && sequences[sequence - 1].tokens == tokens && known_[before] != 0) {
    return shares_[cell] = shares_[before];
  }
  const SequenceCost cost = problem_.model->sequence(tokens, ways_[way].way);
  NodeShare& share = shares_[cell];
  share = {.work = cost.compute,
           .path = cost.path,
           .traffic = cost.traffic(),
           .streamed = cost.streamed};
  share.traffic += cost.merge;
  return share;
}

Passes CostTable::node(std::size_t way,
                       const Passes& work,
                       const Passes& path,
                       const Passes& traffic,
                       const Passes& streamed) const {
  Passes cost = compute_seconds(ways_[way].fixed, work, path, streamed);
  cost += ways_[way].exchanges;
  cost += traffic;
  return cost;
}

std::int64_t CostTable::share(std::size_t sequence, std::size_t way) {
  const std::int64_t dense = problem_.model->dense(problem_.sequences[sequence].tokens).sum();
  return at(sequence, way).sum() + (dense >> ways_[way].level);
}

std::int64_t CostTable::opening_share(std::size_t sequence, std::size_t way) {
  const NodeShare& cost = at(sequence, way);
  const std::int64_t dense = problem_.model->dense(problem_.sequences[sequence].tokens).sum();
  return node(way, cost.work, cost.path, cost.traffic, cost.streamed).sum() +
         (dense >> ways_[way].level);
}

}  // namespace nsp
