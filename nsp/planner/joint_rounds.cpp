#include "nsp/planner/joint_rounds.h"

#include <algorithm>
#include <utility>

#include "nsp/planner/deal_search.h"
#include "nsp/planner/round_estimate.h"

namespace nsp {
namespace {

constexpr std::int64_t kLittle = 3;  // part of the effort that a look takes
constexpr std::size_t kKinds = 3;    // of deals to start from

struct Candidate {
  DealFound deal;
  std::size_t kind = 0;  // which start it comes from
};

std::size_t filled(const Hands& hands) {
  return static_cast<std::size_t>(
      std::ranges::count_if(hands, [](const auto& hand) { return !hand.empty(); }));
}

// Deals to start from. Sorted: equal parts, full short rounds, and of two a small last round.
std::vector<Hands> starts(const Problem& batch, std::int64_t rounds, std::int64_t most_tokens) {
  const std::int64_t tokens = sum_tokens(batch.sequences);
  std::vector<Hands> result = {
      deal_evenly(batch, rounds),
      deal_sorted(batch, rounds, tokens / rounds),
      deal_sorted(batch, rounds, most_tokens < tokens ? most_tokens : tokens / 4)};
  return result;
}

// The improved deals, least estimated step first.
std::vector<Candidate> candidates(const Problem& batch,
                                  std::int64_t fewest,
                                  const NspEffort& effort) {
  std::vector<Candidate> found;
  const std::int64_t most = std::min(fewest + effort.more_rounds, std::ssize(batch.sequences));
  for (std::int64_t rounds = fewest; rounds <= most; ++rounds) {
    const RoundEstimate estimate(batch, rounds);
    std::size_t kind = 0;
    for (const Hands& start : starts(batch, rounds, estimate.most_tokens())) {
      found.push_back(
          {.deal = improve_deal(estimate, start, effort.trials * rounds), .kind = kind++});
    }
  }
  std::erase_if(found, [](const Candidate& one) { return filled(one.deal.hands) < 2; });
  std::ranges::stable_sort(found, {}, [](const Candidate& one) { return one.deal.step; });
  return found;
}

NspEffort part_of(const NspEffort& effort, std::int64_t part) {
  return {.targets = 2,
          .parts = {effort.parts.empty() ? 6 : effort.parts.front()},
          .skeleton = effort.skeleton / part,
          .search = effort.search / part};
}

}  // namespace

std::vector<Solution> plan_jointly(const Problem& batch,
                                   std::int64_t fewest,
                                   const NspEffort& effort) {
  const auto planned = [&](const Hands& hands, const NspEffort& limits) {
    return plan_hands(
        batch, hands, [&](const Problem& problem) { return nsp_round(problem, limits); });
  };
  std::vector<Solution> best;
  std::int64_t best_step = INT64_MAX;
  const Hands* chosen = nullptr;
  std::vector<int> looked(kKinds, 0);
  const std::vector<Candidate> found = candidates(batch, fewest, effort);
  for (const Candidate& one : found) {
    if (looked[one.kind] == effort.looks) {
      continue;
    }
    std::vector<Solution> seen = planned(one.deal.hands, part_of(effort, kLittle));
    const std::int64_t step = all_feasible(seen) ? total_step(batch, seen) : INT64_MAX;
    looked[one.kind] += step < INT64_MAX ? 1 : 0;
    if (step < best_step) {
      best = std::move(seen);
      best_step = step;
      chosen = &one.deal.hands;
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
