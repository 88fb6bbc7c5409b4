#include "nsp/planner/target_greedy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Rank {
  std::int64_t load = 0;
  std::int64_t tokens = 0;  // each slice rounded up
};

struct Candidate {
  std::int64_t load = kNever;  // of the node's slowest rank, with the sequence
  std::size_t way = 0;
  std::size_t index = 0;
  std::int64_t cost = 0;
};

// Heaps give their largest first: the least load, lowest rank, must be the largest.
bool heavier(const std::pair<std::int64_t, std::size_t>& a,
             const std::pair<std::int64_t, std::size_t>& b) {
  return b < a;
}

class Greedy {
 public:
  explicit Greedy(CostTable& costs)
      : costs_(costs),
        problem_(costs.problem()),
        ranks_(static_cast<std::size_t>(problem_.world),
               {.load = problem_.model->dense_fixed().sum()}) {
    for (const TableWay& way : costs.ways()) {
      active_.emplace_back(ranks_.size() >> way.level, 0);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {  // equal loads by rank: a heap
      leaves_.emplace_back(ranks_[rank].load, rank);
    }
  }

  Placement place(std::size_t sequence, std::int64_t target);

 private:
  Candidate best_at(std::size_t sequence, std::size_t way);
  Candidate best_of(std::size_t sequence, const WayRange& ways);
  std::size_t lightest_leaf();
  Candidate emptiest(std::size_t sequence);
  Placement take(std::size_t sequence, const Candidate& chosen);
  std::int64_t slice(std::size_t sequence, std::size_t level) const {
    return (problem_.sequences[sequence].tokens + (std::int64_t{1} << level) - 1) >> level;
  }

  CostTable& costs_;
  const Problem& problem_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::uint8_t>> active_;             // by way and index
  std::vector<std::pair<std::int64_t, std::size_t>> leaves_;  // heap: load, rank; may be behind
};

Candidate Greedy::best_at(std::size_t sequence, std::size_t way) {
  const std::size_t level = costs_.ways()[way].level;
  const std::int64_t room = problem_.token_budget - slice(sequence, level);
  const std::int64_t later = costs_.share(sequence, way);
  const std::int64_t opening = costs_.opening_share(sequence, way);
  Candidate best;
  if (level == 0) {  // nothing is below the lightest leaf if it has room and need not be opened
    const std::size_t leaf = lightest_leaf();
    if (active_[way][leaf] != 0 && ranks_[leaf].tokens <= room) {
      return {.load = ranks_[leaf].load + later, .way = way, .index = leaf, .cost = later};
    }
  }
  for (std::size_t i = 0; i < active_[way].size(); ++i) {
    Rank most;
    for (std::size_t rank = i << level; rank < (i + 1) << level; ++rank) {
      most.load = std::max(most.load, ranks_[rank].load);
      most.tokens = std::max(most.tokens, ranks_[rank].tokens);
    }
    const std::int64_t cost = active_[way][i] != 0 ? later : opening;
    if (most.tokens <= room && most.load + cost < best.load) {
      best = {.load = most.load + cost, .way = way, .index = i, .cost = cost};
    }
  }
  return best;
}

// Loads only grow: a leaf whose load in the heap is its own is the lightest.
std::size_t Greedy::lightest_leaf() {
  while (ranks_[leaves_.front().second].load != leaves_.front().first) {
    std::ranges::pop_heap(leaves_, heavier);
    leaves_.back().first = ranks_[leaves_.back().second].load;
    std::ranges::push_heap(leaves_, heavier);
  }
  return leaves_.front().second;
}

Candidate Greedy::best_of(std::size_t sequence, const WayRange& ways) {
  Candidate best;
  for (std::size_t way = ways.begin; way < ways.end; ++way) {
    const Candidate here = best_at(sequence, way);
    best = here.load < best.load ? here : best;
  }
  return best;
}

// Of the largest degree's nodes the one whose fullest rank holds the fewest tokens.
Candidate Greedy::emptiest(std::size_t sequence) {
  const std::size_t way = costs_.ways_at(costs_.levels() - 1).begin;
  const std::size_t level = costs_.ways()[way].level;
  std::int64_t least = kNever;
  Candidate best{.way = way, .cost = costs_.opening_share(sequence, way)};
  for (std::size_t i = 0; i < active_[way].size(); ++i) {
    std::int64_t most = 0;
    for (std::size_t rank = i << level; rank < (i + 1) << level; ++rank) {
      most = std::max(most, ranks_[rank].tokens);
    }
    if (most < least) {
      least = most;
      best.index = i;
    }
  }
  return best;
}

Placement Greedy::take(std::size_t sequence, const Candidate& chosen) {
  const TableWay& way = costs_.ways()[chosen.way];
  active_[chosen.way][chosen.index] = 1;
  const std::size_t first = chosen.index << way.level;
  const std::size_t degree = std::size_t{1} << way.level;
  for (std::size_t rank = first; rank < first + degree; ++rank) {
    ranks_[rank].load += chosen.cost;
    ranks_[rank].tokens += slice(sequence, way.level);
  }
  const Sequence& one = problem_.sequences[sequence];
  return nsp::place(one.index, one.tokens, static_cast<std::int32_t>(first), way.way);
}

Placement Greedy::place(std::size_t sequence, std::int64_t target) {
  Candidate best;
  for (std::size_t l = 0; l < costs_.levels(); ++l) {
    if (slice(sequence, l) > problem_.token_budget) {
      continue;
    }
    const Candidate here = best_of(sequence, costs_.ways_at(l));
    if (here.load <= target) {
      return take(sequence, here);
    }
    if (here.load < best.load) {
      best = here;
    }
  }
  return take(sequence, best.load < kNever ? best : emptiest(sequence));
}

}  // namespace

std::vector<Placement> target_greedy(CostTable& costs, std::int64_t target) {
  Greedy greedy(costs);
  std::vector<Placement> placements;
  placements.reserve(costs.problem().sequences.size());
  for (std::size_t i = 0; i < costs.problem().sequences.size(); ++i) {
    placements.push_back(greedy.place(i, target));
  }
  return placements;
}

}  // namespace nsp
