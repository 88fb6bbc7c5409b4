#include "nsp/planner/trial.h"

#include <ranges>

namespace nsp {

void Trial::begin() {
  undo_.clear();
  energy_ = state_.energy();
  ++spent_;
}

void Trial::move(std::size_t sequence, Assignment::Id node) {
  const Assignment::Id from = state_.nodes()[sequence];
  if (from == node) {
    return;
  }
  spent_ += 8 + (std::int64_t{1} << state_.level(from)) + (std::int64_t{1} << state_.level(node));
  undo_.emplace_back(sequence, from);
  state_.move(sequence, node);
}

bool Trial::settle(std::int64_t threshold, std::int64_t most_excess) {
  const std::size_t part = threshold > 0 ? below(static_cast<std::size_t>(threshold)) : 0;
  if (state_.excess() <= most_excess &&
      state_.energy() <= energy_ + static_cast<std::int64_t>(part)) {
    return true;
  }
  for (const auto& [sequence, node] : undo_ | std::views::reverse) {
    state_.move(sequence, node);
  }
  return false;
}

std::size_t Trial::below(std::size_t bound) {
  return static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(bound)));
}

}  // namespace nsp
