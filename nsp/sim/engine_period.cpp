// All layers are equal, so after a few of them the ranks' whole state usually comes back, later by
// some nanoseconds. From equal states the same follows: the visits between are then added up
// without being played. The last visits of a run of equal ones are always played: there the state
// sees what comes next.
#include <algorithm>

#include "nsp/sim/engine.h"

namespace nsp {
namespace {

constexpr std::size_t kMoments = 4;  // longest period looked for, in visits

}  // namespace

// The last rank has begun this visit.
void Engine::look_for_period(std::int32_t visit) {
  if (!options_.skip_periods || options_.spans) {
    return;
  }
  if (visit == 0 || script_.visits[at(visit)].stage != script_.visits[at(visit - 1)].stage) {
    history_.clear();
  }
  const std::int32_t spare = spare_visits(visit);
  if (spare <= 0) {
    return;
  }
  Moment present{.visit = visit, .time = now_, .state = state(visit), .ranks = timeline_.ranks};
  for (const Moment& before : history_) {
    const std::int32_t periods = spare / (visit - before.visit);
    if (periods > 0 && before.state == present.state) {
      leap(before, visit, periods);
      history_.clear();
      return;
    }
  }
  if (history_.size() == kMoments) {
    history_.erase(history_.begin());
  }
  history_.push_back(std::move(present));
}

// How far every rank may leap without one of them, or what it asks for ahead, leaving the run.
std::int32_t Engine::spare_visits(std::int32_t visit) const {
  const std::int32_t stage = script_.visits[at(visit)].stage;
  std::int32_t end = visit;
  while (end < std::ssize(script_.visits) && script_.visits[at(end)].stage == stage) {
    ++end;
  }
  return end - 3 - std::ranges::max(ranks_, {}, &Rank::visit).visit;
}

// Everything that decides what follows, relative to now and to the visit.
std::vector<std::int64_t> Engine::state(std::int32_t visit) const {
  const std::int32_t base = script_.visits[at(visit)].asked_at_begin;
  std::vector<std::int64_t> state = {fsdp_done_ - base};
  for (std::int32_t i = 0; i < script_.world; ++i) {
    const Rank& rank = ranks_[at(i)];
    const bool runs = rank.computing && rank.compute_end != kNotStarted;
    state.insert(state.end(),
                 {rank.visit - visit,
                  rank.compute,
                  rank.exchange,
                  rank.computing,
                  rank.exchanging,
                  rank.asked - base,
                  runs ? rank.compute_end - now_ : kNotStarted});
    if (!runs) {
      state.insert(state.end(),
                   {rank.free_since - now_,
                    rank.exchanged_then - links_.exchanged(i, now_),
                    rank.fsdp_then - links_.fsdp_busy(now_)});
    }
  }
  for (const Slot& slot : slots_) {
    state.push_back(slot.arrived);
  }
  links_.append_state(now_, state);
  return state;
}

void Engine::leap(const Moment& before, std::int32_t visit, std::int32_t periods) {
  const std::int32_t visits = periods * (visit - before.visit);
  const std::int32_t operations = periods * (script_.visits[at(visit)].asked_at_begin -
                                             script_.visits[at(before.visit)].asked_at_begin);
  leapt_ += periods * (now_ - before.time);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Breakdown& breakdown = timeline_.ranks[rank];
    Breakdown period = breakdown;
    period.add(before.ranks[rank], -1);
    breakdown.add(period, periods);
    ranks_[rank].visit += visits;
    ranks_[rank].asked += operations;
  }
  fsdp_done_ += operations;
  recount();
}

// Counts that follow from where the ranks are.
void Engine::recount() {
  std::ranges::fill(asked_, 0);
  std::ranges::fill(begun_, 0);
  for (const Rank& rank : ranks_) {
    for (std::size_t i = 0; i < at(rank.asked); ++i) {
      ++asked_[i];
    }
    const std::int32_t begun = rank.visit + (rank.compute > 0 ? 1 : 0);
    for (std::size_t i = 0; i < at(begun); ++i) {
      ++begun_[i];
    }
  }
}

}  // namespace nsp
