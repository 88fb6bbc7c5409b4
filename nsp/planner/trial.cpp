#include "nsp/planner/trial.h"

namespace nsp {

void Trial::begin() {
  state_.begin();
  energy_ = state_.energy();
  ++spent_;
}

void Trial::move(std::size_t sequence, Assignment::Id node) {
  const Assignment::Id from = state_.nodes()[sequence];
  if (from == node) {
    return;
  }
  spent_ += 8 + (std::int64_t{1} << state_.level(from)) + (std::int64_t{1} << state_.level(node));
  state_.move(sequence, node);
}

bool Trial::settle(std::int64_t threshold, std::int64_t most_excess) {
  const std::size_t part = threshold > 0 ? below(static_cast<std::size_t>(threshold)) : 0;
  if (state_.excess() <= most_excess &&
      state_.energy() <= energy_ + static_cast<std::int64_t>(part)) {
    state_.keep();
    return true;
  }
  state_.undo();
  return false;
}

std::size_t Trial::way_at(std::size_t level) {
  const WayRange& range = state_.ways_at(level);
  return range.begin + (range.size() > 1 ? below(range.size()) : 0);
}

Assignment::Id Trial::node_of(std::size_t way) {
  return state_.first_id(way) + static_cast<Assignment::Id>(below(state_.way_size(way)));
}

std::size_t Trial::below(std::size_t bound) {
  return static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(bound)));
}

}  // namespace nsp
