#include "nsp/planner/nsp.h"

#include <algorithm>
#include <utility>

#include "nsp/planner/assignment.h"
#include "nsp/planner/local_search.h"
#include "nsp/planner/skeleton.h"
#include "nsp/planner/target_greedy.h"

namespace nsp {
namespace {

using Ids = std::vector<Assignment::Id>;

class OneRound {
 public:
  OneRound(const Problem& problem, const NspEffort& effort)
      : problem_(problem), effort_(effort), costs_(problem), state_(costs_), random_(kSeed) {}

  void start_from(const std::vector<Placement>& placements);
  void bisect_target();
  void restart(int part);
  std::vector<Solution> take(std::size_t most);

 private:
  static constexpr std::uint64_t kSeed = 2609'22755;
  static constexpr std::int64_t kNearly = 8192;  // loads closer than 1 / kNearly count as equal

  void offer(const std::vector<Placement>& placements);
  void keep();
  Ids thinned(const Ids& nodes, std::int64_t most);
  void thin_out(std::size_t sequence, std::int64_t most);
  bool thinner(std::size_t sequence, Assignment::Id to, std::int64_t most);
  bool optimal() const {
    return !nodes_.empty() && best_.excess == 0 && best_.load <= effort_.bound;
  }
  std::size_t count_long(int part);
  std::int64_t scaled(std::int64_t work) const;

  const Problem& problem_;
  const NspEffort& effort_;
  CostTable costs_;
  Assignment state_;
  Random random_;
  Quality best_;
  Ids nodes_;
  std::vector<Ids> found_;                // by the restarts, within the token budget
  std::int64_t least_start_ = INT64_MAX;  // load
};

void OneRound::keep() {
  const Quality now = quality(state_);
  if (nodes_.empty() || now < best_) {
    best_ = now;
    nodes_ = state_.nodes();
  }
}

void OneRound::offer(const std::vector<Placement>& placements) {
  state_.assign(placements);
  keep();
}

// A start that runs in ways which the request does not allow is left out.
void OneRound::start_from(const std::vector<Placement>& placements) {
  const bool allowed = std::ranges::all_of(placements, [&](const Placement& placement) {
    return state_.id(placement.node.first_rank, way_of(placement)) != Assignment::kNone;
  });
  if (!allowed) {
    return;
  }
  offer(placements);
  if (state_.excess() == 0) {
    least_start_ = std::min(least_start_, quality(state_).load);
  }
}

// From the mean of all sequences at their leaves up: a target that is kept sinks, another rises.
void OneRound::bisect_target() {
  std::int64_t low = 0;
  for (std::size_t i = 0; i < problem_.sequences.size(); ++i) {
    low += costs_.share(i, 0);
  }
  low /= problem_.world;
  std::int64_t high = low + low / 2;
  // A greedy plan looks at every sequence and rank: large problems afford fewer.
  const std::int64_t looks = std::ssize(problem_.sequences) * problem_.world;
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{1} << 23) / looks);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(effort_.targets, most) && !optimal(); ++i) {
    const std::int64_t target = low + (high - low) / 2;
    offer(target_greedy(costs_, target));
    (quality(state_).load <= target + target / 256 ? high : low) = target;
  }
}

// Sequences that on a leaf would fill 1 / part of the load.
std::size_t OneRound::count_long(int part) {
  std::size_t count = 0;
  while (count < problem_.sequences.size() && costs_.share(count, 0) * part > best_.load) {
    ++count;
  }
  return std::min(std::max<std::size_t>(count, 4), problem_.sequences.size());
}

// Small problems need less, larger worlds more, up to a point.
std::int64_t OneRound::scaled(std::int64_t work) const {
  const auto size = static_cast<std::int64_t>(problem_.sequences.size());
  const std::int64_t ranks = std::clamp(problem_.world, 64, 256);
  return std::min(work / 64 * ranks, 20000 + 2000 * size);
}

void OneRound::restart(int part) {
  if (optimal()) {
    return;
  }
  state_.assign(nodes_);
  anneal_skeleton(
      state_, costs_, random_, {.work = scaled(effort_.skeleton), .longest = count_long(part)});
  keep();
  if (!optimal()) {
    local_search(state_, random_, scaled(effort_.search));
    keep();
  }
  if (effort_.all_restarts && state_.excess() == 0) {
    found_.push_back(state_.nodes());
  }
}

// To a node below the sequence's own, if that moves fewer bytes and costs next to nothing, or holds
// fewer tokens beyond the budget. The load of the node's own ranks alone rules most out.
bool OneRound::thinner(std::size_t sequence, Assignment::Id to, std::int64_t most) {
  const std::int64_t excess = state_.excess();
  const std::int64_t traffic = state_.traffic();
  state_.begin();
  state_.move(sequence, to);
  const bool less = state_.excess() < excess;
  const bool same = state_.excess() == excess && state_.traffic() < traffic;
  if (less || (same && state_.node_load(to) <= most && state_.largest().sum() <= most)) {
    state_.keep();
    return true;
  }
  state_.undo();
  return false;
}

void OneRound::thin_out(std::size_t sequence, std::int64_t most) {
  const Node node = state_.node(state_.nodes()[sequence]);
  for (const TableWay& way : costs_.ways()) {
    for (std::int32_t at = 0; way.way.degree < node.degree && at < node.degree;
         at += way.way.degree) {
      if (thinner(sequence, state_.id(node.first_rank + at, way.way), most)) {
        return;
      }
    }
  }
}

// Each sequence to the smallest such degree.
Ids OneRound::thinned(const Ids& nodes, std::int64_t most) {
  state_.assign(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    thin_out(i, std::min(most, least_start_));
  }
  return state_.nodes();
}

// The best; then, up to `most` in all, the best thinned out further, what restarts found.
std::vector<Solution> OneRound::take(std::size_t most) {
  std::vector<Solution> taken;
  const auto add = [&](const Ids& nodes) {
    state_.assign(nodes);
    taken.push_back(score(problem_, state_.placement()));
  };
  const Ids best = nodes_;
  add(thinned(best, best_.load + best_.load / kNearly));
  const bool others = best_.excess == 0 && most > 1;
  for (std::size_t i = 0; others && i < effort_.thin.size() && taken.size() < most; ++i) {
    add(thinned(best, best_.load + best_.load / effort_.thin[i]));
  }
  for (std::size_t i = 0; others && i < found_.size() && taken.size() < most; ++i) {
    if (found_[i] != best) {
      add(found_[i]);
    }
  }
  return taken;
}

}  // namespace

NspEffort nsp_effort(const std::string& name) {
  if (name == "fast") {
    return {.targets = 2,
            .parts = {6},
            .skeleton = 28'000,
            .search = 6'000,
            .baselines = false,
            .trials = 16,
            .looks = 1};
  }
  if (name == "default") {
    return {.targets = 4,
            .parts = {6},
            .skeleton = 320'000,
            .search = 120'000,
            .baselines = true,
            .split_percent = 5,
            .trials = 96,
            .more_rounds = 1,
            .looks = 1,
            .thin = {512, 64},
            .finalists = 4,
            .all_restarts = true};
  }
  return {.targets = 8,
          .parts = {6, 4, 8, 3, 12},
          .skeleton = 1'600'000,
          .search = 400'000,
          .baselines = true,
          .split_percent = 2,
          .trials = 384,
          .more_rounds = 2,
          .looks = 3,
          .thin = {1024, 256, 64},
          .finalists = 10,
          .all_restarts = true};
}

Solution nsp_round(const Problem& problem,
                   const NspEffort& effort,
                   const std::vector<std::vector<Placement>>& starts) {
  return std::move(nsp_finalists(problem, effort, starts, 1).front());
}

std::vector<Solution> nsp_finalists(const Problem& problem,
                                    const NspEffort& effort,
                                    const std::vector<std::vector<Placement>>& starts,
                                    std::size_t most) {
  OneRound round(problem, effort);
  for (const std::vector<Placement>& placements : starts) {
    round.start_from(placements);
  }
  round.bisect_target();
  for (const int part : effort.parts) {
    round.restart(part);
  }
  return round.take(most);
}

}  // namespace nsp
