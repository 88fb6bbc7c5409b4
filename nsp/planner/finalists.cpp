#include "nsp/planner/finalists.h"

#include <utility>

#include "nsp/planner/rounds.h"
#include "nsp/planner/schedules.h"

namespace nsp {
namespace {

using Rounds = std::vector<Solution>;

bool equal_placements(const Rounds& a, const Rounds& b) {
  return std::ranges::equal(a, b, {}, &Solution::placements, &Solution::placements);
}

}  // namespace

void Finalists::offer(Rounds rounds) {
  if (rounds.empty()) {
    return;
  }
  const bool fits = all_feasible(rounds);
  Plan plan{.rounds = std::move(rounds), .load = 0};
  plan.load = total_load(plan.rounds);
  if (plans_.empty() || (fits && all_feasible(plans_.front().rounds))) {
    plans_.push_back(std::move(plan));
  } else if (fits || (!all_feasible(plans_.front().rounds) && plan.load < plans_.front().load)) {
    plans_.clear();
    plans_.push_back(std::move(plan));
  }
}

void Finalists::offer_rival(Rounds rounds) {
  if (!rounds.empty() && all_feasible(rounds)) {
    limit(total_load(rounds));
  }
  offer(std::move(rounds));
}

const Rounds* Finalists::least_load_plan() const {
  const auto least = std::ranges::min_element(plans_, {}, &Plan::load);
  return least == plans_.end() ? nullptr : &least->rounds;
}

std::int64_t Finalists::least_load() const {
  const Rounds* const least = least_load_plan();
  return least != nullptr && all_feasible(*least) ? total_load(*least) : INT64_MAX;
}

// Chooses the schedules of the rounds, as the plan would get them.
void Finalists::play(Plan& plan) const {
  std::vector<Round> rounds;
  for (const Solution& solution : plan.rounds) {
    rounds.push_back({.placements = solution.placements});
  }
  plan.step = choose_schedules({.model = batch_.model,
                                .shape = &shape_,
                                .world = batch_.world,
                                .checkpointing = batch_.checkpointing},
                               rounds);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    plan.rounds[i].schedule = std::move(rounds[i].schedule);
  }
}

// A plan that breaks the budget is alone and above no limit.
const Rounds& Finalists::choose() {
  static const Rounds kNone;
  if (plans_.empty()) {
    return kNone;
  }
  std::ranges::stable_sort(plans_, {}, &Plan::load);
  const auto again = std::ranges::unique(plans_, equal_placements, &Plan::rounds);
  plans_.erase(again.begin(), again.end());
  std::size_t count = 1;
  while (count < std::min(plans_.size(), most_) && plans_[count].load <= most_load_) {
    ++count;
  }
  if (count == 1) {
    return plans_.front().rounds;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (plans_[i].step == 0) {
      play(plans_[i]);
    }
  }
  const auto end = plans_.begin() + static_cast<std::ptrdiff_t>(count);
  return std::ranges::min_element(plans_.begin(), end, {}, &Plan::step)->rounds;
}

}  // namespace nsp
