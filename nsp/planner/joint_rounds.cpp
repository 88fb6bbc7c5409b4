#include "nsp/planner/joint_rounds.h"

#include <algorithm>
#include <utility>

#include "nsp/planner/deal_search.h"
#include "nsp/planner/round_estimate.h"

namespace nsp {
namespace {

constexpr std::int64_t kMoreRounds = 2;  // beyond the fewest

std::size_t filled(const Hands& hands) {
  return static_cast<std::size_t>(
      std::ranges::count_if(hands, [](const auto& hand) { return !hand.empty(); }));
}

// Deals to start from. Sorted: equal parts, full short rounds, and a small last round.
std::vector<Hands> starts(const Problem& batch, std::int64_t rounds, std::int64_t most_tokens) {
  const std::int64_t tokens = sum_tokens(batch.sequences);
  std::vector<Hands> result = {deal_evenly(batch, rounds),
                               deal_sorted(batch, rounds, tokens / rounds)};
  if (most_tokens < tokens) {
    result.push_back(deal_sorted(batch, rounds, most_tokens));
  }
  if (rounds == 2) {
    result.push_back(deal_sorted(batch, rounds, tokens / 8));
    result.push_back(deal_sorted(batch, rounds, tokens / 4));
  }
  return result;
}

// The improved deals, least estimated step first.
std::vector<DealFound> deals(const Problem& batch, std::int64_t fewest, std::int64_t trials) {
  std::vector<DealFound> found;
  const std::int64_t most = std::min(fewest + kMoreRounds, std::ssize(batch.sequences));
  for (std::int64_t rounds = fewest; rounds <= most; ++rounds) {
    const RoundEstimate estimate(batch, rounds);
    for (const Hands& start : starts(batch, rounds, estimate.most_tokens())) {
      found.push_back(improve_deal(estimate, start, trials * rounds));
    }
  }
  std::ranges::stable_sort(found, {}, &DealFound::step);
  return found;
}

}  // namespace

std::vector<Solution> plan_jointly(const Problem& batch,
                                   std::int64_t fewest,
                                   const NspEffort& effort) {
  const NspEffort little{.targets = 1, .parts = {6}, .skeleton = 30'000, .search = 10'000};
  const auto planned = [&](const Hands& hands, const NspEffort& limits) {
    return plan_hands(
        batch, hands, [&](const Problem& problem) { return nsp_round(problem, limits); });
  };
  std::vector<Solution> best;
  std::int64_t best_step = 0;
  const Hands* chosen = nullptr;
  int looks = 0;
  const std::vector<DealFound> found = deals(batch, fewest, effort.trials);
  for (const DealFound& deal : found) {
    if (looks == effort.looks || filled(deal.hands) < 2) {
      continue;
    }
    std::vector<Solution> seen = planned(deal.hands, little);
    if (!all_feasible(seen)) {
      continue;
    }
    ++looks;
    const std::int64_t step = total_step(batch, seen);
    if (chosen == nullptr || step < best_step) {
      best = std::move(seen);
      best_step = step;
      chosen = &deal.hands;
    }
  }
  if (chosen != nullptr) {
    std::vector<Solution> careful = planned(*chosen, effort);
    if (all_feasible(careful) && total_step(batch, careful) <= best_step) {
      best = std::move(careful);
    }
  }
  return best;
}

}  // namespace nsp
