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

  void start_from(const std::vector<Node>& nodes);
  void bisect_target();
  void restart(int part);
  void thin_out();
  Solution take();

 private:
  static constexpr std::uint64_t kSeed = 2609'22755;
  static constexpr std::int64_t kNearly = 8192;  // loads closer than 1 / kNearly count as equal

  void offer(const std::vector<Node>& nodes);
  void keep();
  std::size_t count_long(int part);
  std::int64_t scaled(std::int64_t work) const;

  const Problem& problem_;
  const NspEffort& effort_;
  CostTable costs_;
  Assignment state_;
  Random random_;
  Quality best_;
  Ids nodes_;
  std::int64_t least_start_ = INT64_MAX;  // load
};

void OneRound::keep() {
  const Quality now = quality(state_);
  if (nodes_.empty() || now < best_) {
    best_ = now;
    nodes_ = state_.nodes();
  }
}

void OneRound::offer(const std::vector<Node>& nodes) {
  state_.assign(nodes);
  keep();
}

void OneRound::start_from(const std::vector<Node>& nodes) {
  offer(nodes);
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
  for (std::int64_t i = 0; i < std::min<std::int64_t>(effort_.targets, most); ++i) {
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
  state_.assign(nodes_);
  anneal_skeleton(
      state_, costs_, random_, {.work = scaled(effort_.skeleton), .longest = count_long(part)});
  local_search(state_, random_, scaled(effort_.search));
  keep();
}

// Each sequence to the smallest degree, among the nodes below its own, that moves fewer bytes and
// costs next to nothing, or holds fewer tokens beyond the budget.
void OneRound::thin_out() {
  state_.assign(nodes_);
  const std::int64_t most = std::min(best_.load + best_.load / kNearly, least_start_);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node node = state_.node(nodes_[i]);
    const Quality before = quality(state_);
    for (std::int32_t degree = 1; degree < node.degree; degree *= 2) {
      for (std::int32_t at = 0; at < node.degree && state_.nodes()[i] == nodes_[i]; at += degree) {
        state_.move(i, state_.id({.first_rank = node.first_rank + at, .degree = degree}));
        const Quality now = quality(state_);
        const bool cheaper = now.load <= most && now.traffic < before.traffic;
        if (now.excess > before.excess || (now.excess == before.excess && !cheaper)) {
          state_.move(i, nodes_[i]);
        }
      }
    }
  }
  nodes_ = state_.nodes();
}

Solution OneRound::take() {
  state_.assign(nodes_);
  return score(problem_, state_.placement());
}

}  // namespace

NspEffort nsp_effort(const std::string& name) {
  if (name == "fast") {
    return {.targets = 2,
            .parts = {6},
            .skeleton = 40'000,
            .search = 8'000,
            .baselines = false,
            .trials = 16,
            .looks = 1};
  }
  if (name == "default") {
    return {.targets = 4,
            .parts = {6},
            .skeleton = 400'000,
            .search = 150'000,
            .baselines = true,
            .split_percent = 5,
            .trials = 96,
            .more_rounds = 1,
            .looks = 1};
  }
  return {.targets = 8,
          .parts = {6, 4, 8, 3, 12},
          .skeleton = 1'600'000,
          .search = 400'000,
          .baselines = true,
          .split_percent = 2,
          .trials = 384,
          .more_rounds = 2,
          .looks = 3};
}

Solution nsp_round(const Problem& problem,
                   const NspEffort& effort,
                   const std::vector<std::vector<Node>>& starts) {
  OneRound round(problem, effort);
  for (const std::vector<Node>& nodes : starts) {
    round.start_from(nodes);
  }
  round.bisect_target();
  for (const int part : effort.parts) {
    round.restart(part);
  }
  round.thin_out();
  return round.take();
}

}  // namespace nsp
