#include "nsp/planner/baselines/flexsp/group_search.h"

#include "nsp/planner/local_search.h"
#include "nsp/planner/trial.h"

namespace nsp {
namespace {

using Id = Assignment::Id;

constexpr std::int64_t kStages = 32;
constexpr std::int64_t kHeat = 10000;

class GroupSearch {
 public:
  GroupSearch(Assignment& state, const std::vector<Id>& groups, Random& random)
      : state_(state),
        groups_(groups),
        trial_(state, random),
        best_(quality(state)),
        best_nodes_(state.nodes()) {}

  void run(std::int64_t work);

 private:
  void retarget();
  Id pick_high();
  Id pick_low();
  void propose();
  void keep_best();

  Assignment& state_;
  const std::vector<Id>& groups_;
  Trial trial_;
  Quality best_;
  std::vector<Id> best_nodes_;
  std::int64_t lowest_ = INT64_MAX;  // energy under the present targets
};

// The most loaded of four random groups that have sequences, the least loaded of three.
Id GroupSearch::pick_high() {
  Id best = Assignment::kNone;
  for (int i = 0; i < 4 || best == Assignment::kNone; ++i) {
    const Id other = groups_[trial_.below(groups_.size())];
    const bool higher =
        best == Assignment::kNone || state_.node_load(other) > state_.node_load(best);
    best = !state_.members(other).empty() && higher ? other : best;
  }
  return best;
}

Id GroupSearch::pick_low() {
  Id best = groups_[trial_.below(groups_.size())];
  for (int i = 0; i < 2; ++i) {
    const Id other = groups_[trial_.below(groups_.size())];
    best = state_.node_load(other) < state_.node_load(best) ? other : best;
  }
  return best;
}

void GroupSearch::propose() {
  const Id from = pick_high();
  const Id to = pick_low();
  const std::uint32_t sequence = state_.members(from)[trial_.below(state_.members(from).size())];
  const auto& members = state_.members(to);
  if (trial_.below(2) == 0 && !members.empty()) {
    trial_.move(members[trial_.below(members.size())], from);
  }
  trial_.move(sequence, to);
}

void GroupSearch::keep_best() {
  if (state_.energy() >= lowest_) {
    return;
  }
  lowest_ = state_.energy();
  const Quality now = quality(state_);
  if (now < best_) {
    best_ = now;
    best_nodes_ = state_.nodes();
  }
}

void GroupSearch::retarget() {
  Passes targets = state_.mean();
  targets += state_.largest();
  state_.set_targets({.forward = targets.forward / 2, .backward = targets.backward / 2});
  lowest_ = INT64_MAX;
}

void GroupSearch::run(std::int64_t work) {
  std::int64_t threshold = kHeat;
  for (std::int64_t stage = 1; stage <= kStages; ++stage) {
    retarget();
    while (trial_.spent() < work / kStages * stage) {
      const std::int64_t excess = stage > kStages / 2 ? state_.excess() : INT64_MAX;
      trial_.begin();
      propose();
      if (trial_.settle(stage == kStages ? 0 : threshold, excess)) {
        keep_best();
      }
    }
    threshold -= threshold / 4;
  }
  state_.assign(best_nodes_);
}

}  // namespace

void group_search(Assignment& state,
                  const std::vector<Id>& groups,
                  Random& random,
                  std::int64_t work) {
  if (!state.nodes().empty() && groups.size() > 1) {
    GroupSearch(state, groups, random).run(work);
  }
}

}  // namespace nsp
