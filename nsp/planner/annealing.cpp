#include "nsp/planner/annealing.h"

#include <vector>

namespace nsp {
namespace {

class Best {
 public:
  explicit Best(Assignment& state)
      : state_(state), quality_(quality(state)), nodes_(state.nodes()) {}

  void retarget();
  void look();
  void restore() { state_.assign(nodes_); }

 private:
  Assignment& state_;
  Quality quality_;
  std::vector<Assignment::Id> nodes_;
  std::int64_t lowest_ = INT64_MAX;  // energy under the present targets
};

void Best::retarget() {
  Passes targets = state_.mean();
  targets += state_.largest();
  state_.set_targets({.forward = targets.forward / 2, .backward = targets.backward / 2});
  lowest_ = INT64_MAX;
}

// The load is looked at only when the energy is the lowest so far: it takes a pass over the ranks.
void Best::look() {
  if (state_.energy() >= lowest_) {
    return;
  }
  lowest_ = state_.energy();
  const Quality now = quality(state_);
  if (now < quality_) {
    quality_ = now;
    nodes_ = state_.nodes();
  }
}

}  // namespace

void anneal(Assignment& state,
            Trial& trial,
            const Cooling& cooling,
            std::int64_t work,
            const AnnealingSteps& steps) {
  std::int64_t threshold = cooling.heat;
  for (std::int64_t stage = 1; stage <= cooling.stages; ++stage) {
    steps.begin_stage();
    const bool strict = stage > cooling.stages - cooling.strict;
    while (trial.spent() < work / cooling.stages * stage) {
      const std::int64_t most_excess = strict ? state.excess() : INT64_MAX;
      trial.begin();
      steps.propose();
      if (trial.settle(stage == cooling.stages ? 0 : threshold, most_excess)) {
        steps.kept();
      }
    }
    threshold -= threshold / cooling.part;
  }
}

void anneal_to_mean(Assignment& state,
                    Trial& trial,
                    const Cooling& cooling,
                    std::int64_t work,
                    const std::function<void()>& propose) {
  Best best(state);
  anneal(
      state,
      trial,
      cooling,
      work,
      {.begin_stage = [&] { best.retarget(); }, .propose = propose, .kept = [&] { best.look(); }});
  best.restore();
}

}  // namespace nsp
