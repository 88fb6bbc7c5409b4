#include "nsp/planner/skeleton.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "nsp/planner/annealing.h"

namespace nsp {
namespace {

using Id = Assignment::Id;

constexpr std::int64_t kHeat = 6;  // threshold at the start, in mean ranks' tokens

class Skeleton {
 public:
  Skeleton(Assignment& state, CostTable& costs, Random& random, std::size_t longest)
      : state_(state), costs_(costs), trial_(state, random), longest_(longest) {}

  void run(std::int64_t work);

 private:
  void melt();
  Passes targets(std::int64_t level) const;
  std::int64_t level();
  void retarget();
  void sink();
  void propose();
  void fill();

  Assignment& state_;
  CostTable& costs_;
  Trial trial_;
  std::size_t longest_;
  Passes fluid_;  // nanoseconds of all of it
  Passes rates_;  // nanoseconds a token
  std::int64_t tokens_ = 0;
  std::int64_t all_tokens_ = 0;
  std::int64_t best_level_ = INT64_MAX;
  std::vector<Id> best_;
};

// Takes the short sequences out.
void Skeleton::melt() {
  const Problem& problem = costs_.problem();
  std::vector<Id> nodes = state_.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    all_tokens_ += problem.sequences[i].tokens;
    if (i >= longest_) {
      nodes[i] = Assignment::kNone;
      fluid_ += costs_.at(i, 0).work;
      tokens_ += problem.sequences[i].tokens;
    }
  }
  fluid_ += problem.model->dense(tokens_);
  state_.assign(nodes);
  const std::int64_t count = std::max<std::int64_t>(1, tokens_);
  rates_ = {.forward = fluid_.forward / count, .backward = fluid_.backward / count};
}

// Forward and backward in the proportion of their means.
Passes Skeleton::targets(std::int64_t level) const {
  const auto world = static_cast<std::int64_t>(state_.world());
  Passes mean = state_.mean();
  mean += {.forward = fluid_.forward / world, .backward = fluid_.backward / world};
  const auto forward = static_cast<std::int64_t>(static_cast<__int128>(level) * mean.forward /
                                                 std::max<std::int64_t>(1, mean.sum()));
  return {.forward = forward, .backward = level - forward};
}

// The least load at which the ranks have room for all of the fluid, to 1 in 8192.
std::int64_t Skeleton::level() {
  const auto world = static_cast<std::int64_t>(state_.world());
  std::int64_t low = state_.mean().sum();
  std::int64_t high = 4 * state_.largest().sum() + 4 * fluid_.sum() / world;
  while (high - low > high / 8192 + 1) {
    const std::int64_t middle = low + (high - low) / 2;
    state_.set_fluid(targets(middle), rates_);
    (state_.energy() <= -tokens_ ? high : low) = middle;
  }
  return high;
}

void Skeleton::retarget() {
  const std::int64_t now = level();
  if (now < best_level_) {
    best_level_ = now;
    best_ = state_.nodes();
  }
  state_.set_fluid(targets(best_level_ - best_level_ / 256), rates_);
}

// Room for all of the fluid: a lower level may do.
void Skeleton::sink() {
  if (state_.energy() <= -tokens_) {
    retarget();
  }
}

// One of the long sequences (the longest quarter half of the time) to a random node of a near
// level, or in exchange with another.
void Skeleton::propose() {
  const std::size_t few = (longest_ + 3) / 4;
  const std::size_t sequence = trial_.below(trial_.below(2) == 0 ? longest_ : few);
  const Id from = state_.nodes()[sequence];
  const std::size_t kind = trial_.below(8);
  if (kind < 3) {
    const std::size_t other = trial_.below(longest_);
    const Id to = state_.nodes()[other];
    trial_.move(other, from);
    trial_.move(sequence, to);
    return;
  }
  std::size_t level = state_.level(from);
  if (kind == 3) {
    level += level + 1 < state_.levels() ? 1 : 0;
  } else if (kind == 4) {
    level -= level > 0 ? 1 : 0;
  } else if (kind == 5) {
    level = trial_.below(state_.levels());
  }
  trial_.move(sequence, trial_.node_of(trial_.way_at(level)));
}

void Skeleton::fill() {
  state_.assign(best_);
  state_.set_fluid(targets(best_level_), rates_);
  std::priority_queue<std::pair<std::int64_t, std::size_t>> rooms;
  for (std::size_t rank = 0; rank < state_.world(); ++rank) {
    rooms.emplace(state_.room(rank), rank);
  }
  for (std::size_t i = longest_; i < state_.nodes().size(); ++i) {
    const std::size_t rank = rooms.top().second;
    rooms.pop();
    state_.place(i, state_.node_of_rank(rank, 0));
    rooms.emplace(state_.room(rank), rank);
  }
}

void Skeleton::run(std::int64_t work) {
  melt();
  const auto world = static_cast<std::int64_t>(state_.world());
  anneal(state_,
         trial_,
         {.stages = 64, .heat = kHeat * all_tokens_ / world, .part = 8},
         work,
         {.begin_stage = [this] { retarget(); },
          .propose = [this] { propose(); },
          .kept = [this] { sink(); }});
  retarget();
  fill();
}

}  // namespace

void anneal_skeleton(Assignment& state,
                     CostTable& costs,
                     Random& random,
                     const SkeletonLimits& limits) {
  Skeleton(state, costs, random, limits.longest).run(limits.work);
}

}  // namespace nsp
