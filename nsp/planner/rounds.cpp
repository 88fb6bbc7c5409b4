#include "nsp/planner/rounds.h"

#include <algorithm>
#include <limits>

namespace nsp {
namespace {

struct Hand {
  std::int64_t cost = 0;
  std::int64_t tokens = 0;
  std::vector<Sequence> sequences;
};

// Seconds x ranks of a sequence at its cheapest degree that fits.
std::int64_t cheapest_area(const Problem& batch, std::int64_t tokens) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t degree : batch.model->allowed_degrees(batch.sp_max)) {
    if ((tokens + degree - 1) / degree <= batch.token_budget || degree == batch.sp_max) {
      least = std::min(least, share(*batch.model, tokens, degree) * degree);
    }
  }
  return least;
}

std::vector<Hand> deal(const Problem& batch, std::int64_t rounds) {
  std::vector<Hand> hands(static_cast<std::size_t>(rounds));
  const std::int64_t room = batch.world * batch.token_budget;
  for (const Sequence& sequence : batch.sequences) {
    const auto key = [&](const Hand& hand) {
      return std::pair(hand.tokens + sequence.tokens > room, hand.cost);
    };
    Hand& hand = *std::ranges::min_element(hands, {}, key);
    hand.cost += cheapest_area(batch, sequence.tokens);
    hand.tokens += sequence.tokens;
    hand.sequences.push_back(sequence);
  }
  return hands;
}

std::vector<Solution> plan_hands(const Problem& batch,
                                 std::vector<Hand> hands,
                                 const RoundPlanner& plan_round) {
  std::vector<Solution> rounds;
  Problem problem = batch;
  for (Hand& hand : hands) {
    problem.sequences = std::move(hand.sequences);
    if (!problem.sequences.empty()) {
      rounds.push_back(plan_round(problem));
    }
  }
  return rounds;
}

}  // namespace

std::int64_t least_rounds(std::int64_t tokens, std::int32_t world, std::int64_t token_budget) {
  const std::int64_t room = world * token_budget;
  return std::max<std::int64_t>(1, tokens / room + (tokens % room != 0));
}

std::vector<Solution> plan_rounds(const Problem& batch, const RoundPlanner& plan_round) {
  std::int64_t tokens = 0;
  for (const Sequence& sequence : batch.sequences) {
    tokens += sequence.tokens;
  }
  const std::int64_t most = std::ssize(batch.sequences);
  std::int64_t count = std::min(least_rounds(tokens, batch.world, batch.token_budget), most);
  while (true) {
    std::vector<Solution> rounds = count == 1 ? std::vector{plan_round(batch)}
                                              : plan_hands(batch, deal(batch, count), plan_round);
    if (all_feasible(rounds) || count >= most) {
      return rounds;
    }
    count = std::min(count + std::max<std::int64_t>(1, count / 8), most);
  }
}

std::vector<Solution> plan_split(const Problem& batch,
                                 std::int64_t tokens,
                                 const RoundPlanner& plan_round) {
  std::size_t first = batch.sequences.size();
  while (first > 0 && batch.sequences[first - 1].tokens <= tokens) {
    tokens -= batch.sequences[--first].tokens;
  }
  if (first == 0 || first == batch.sequences.size()) {
    return {};
  }
  const auto middle = batch.sequences.begin() + static_cast<std::ptrdiff_t>(first);
  Problem large = batch;
  Problem small = batch;
  large.sequences.assign(batch.sequences.begin(), middle);
  small.sequences.assign(middle, batch.sequences.end());
  return {plan_round(large), plan_round(small)};
}

std::int64_t total_load(const std::vector<Solution>& rounds) {
  std::int64_t sum = 0;
  for (const Solution& round : rounds) {
    sum += round.load;
  }
  return sum;
}

bool all_feasible(const std::vector<Solution>& rounds) {
  return std::ranges::all_of(rounds, &Solution::feasible);
}

}  // namespace nsp
