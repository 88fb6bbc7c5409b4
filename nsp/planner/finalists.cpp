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
  offer(Plan{.rounds = std::move(rounds)});
}

void Finalists::offer(Plan plan) {
  if (plan.rounds.empty()) {
    return;
  }
  const bool fits = all_feasible(plan.rounds);
  plan.load = total_load(plan.rounds);
  if (plans_.empty() || (fits && all_feasible(plans_.front().rounds))) {
    plans_.push_back(std::move(plan));
  } else if (fits || (!all_feasible(plans_.front().rounds) && plan.load < plans_.front().load)) {
    plans_.clear();
    plans_.push_back(std::move(plan));
  }
}

void Finalists::offer_rival(Rounds rounds, bool played) {
  if (!rounds.empty() && all_feasible(rounds)) {
    limit(total_load(rounds));
  }
  offer(Plan{.rounds = std::move(rounds), .played = played});
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

// The plans to simulate come first: the `most` of least load, then those that are always played.
// A plan that breaks the budget is alone and above no limit. Of equal plans one is left, that which
// is always played if there is one.
const Rounds& Finalists::choose() {
  static const Rounds kNone;
  if (plans_.empty()) {
    return kNone;
  }
  std::ranges::stable_sort(
      plans_, {}, [](const Plan& plan) { return std::pair(plan.load, !plan.played); });
  const auto again = std::ranges::unique(plans_, equal_placements, &Plan::rounds);
  plans_.erase(again.begin(), again.end());
  const auto beyond = std::ranges::find_if(
      plans_.begin() + 1, plans_.end(), [&](const Plan& plan) { return plan.load > most_load_; });
  plans_.erase(beyond, plans_.end());
  const auto least = static_cast<std::ptrdiff_t>(std::min(plans_.size(), most_));
  const auto rest = std::stable_partition(
      plans_.begin() + least, plans_.end(), [](const Plan& plan) { return plan.played; });
  const auto count = static_cast<std::size_t>(rest - plans_.begin());
  if (count == 1 || most_ == 1) {
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
