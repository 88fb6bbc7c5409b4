#include "nsp/planner/baselines/flexsp/group_search.h"

#include "nsp/planner/annealing.h"

namespace nsp {
namespace {

using Id = Assignment::Id;

constexpr Cooling kCooling = {.stages = 32, .heat = 10000, .part = 4, .strict = 16};

class GroupSearch {
 public:
  GroupSearch(Assignment& state, const std::vector<Id>& groups, Random& random)
      : state_(state), groups_(groups), trial_(state, random) {}

  void run(std::int64_t work) {
    anneal_to_mean(state_, trial_, kCooling, work, [this] { propose(); });
  }

 private:
  Id pick_high();
  Id pick_low();
  void propose();

  Assignment& state_;
  const std::vector<Id>& groups_;
  Trial trial_;
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
