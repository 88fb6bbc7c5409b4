#include "nsp/planner/deal.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace nsp {
namespace {

// Seconds x ranks of a sequence at its cheapest degree that fits.
std::int64_t cheapest_area(const Problem& batch, std::int64_t tokens) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int32_t> degrees = batch.model->allowed_degrees(batch.sp_max);
  for (const std::int32_t degree : degrees) {
    if ((tokens + degree - 1) / degree <= batch.token_budget || degree == degrees.back()) {
      least = std::min(least, share(*batch.model, tokens, degree) * degree);
    }
  }
  return least;
}

}  // namespace

std::int64_t least_rounds(std::int64_t tokens, std::int32_t world, std::int64_t token_budget) {
  const std::int64_t room = world * token_budget;
  return std::max<std::int64_t>(1, tokens / room + (tokens % room != 0));
}

std::int64_t sum_tokens(const std::vector<Sequence>& sequences) {
  std::int64_t sum = 0;
  for (const Sequence& sequence : sequences) {
    sum += sequence.tokens;
  }
  return sum;
}

Hands deal_evenly(const Problem& batch, std::int64_t rounds) {
  struct Sum {
    std::int64_t cost = 0;
    std::int64_t tokens = 0;
    std::size_t round = 0;
  };
  std::vector<Sum> sums(static_cast<std::size_t>(rounds));
  for (std::size_t r = 0; r < sums.size(); ++r) {
    sums[r].round = r;
  }
  Hands hands(sums.size());
  const std::int64_t room = batch.world * batch.token_budget;
  for (const Sequence& sequence : batch.sequences) {
    const auto key = [&](const Sum& sum) {
      return std::pair(sum.tokens + sequence.tokens > room, sum.cost);
    };
    Sum& least = *std::ranges::min_element(sums, {}, key);
    least.cost += cheapest_area(batch, sequence.tokens);
    least.tokens += sequence.tokens;
    hands[least.round].push_back(sequence);
  }
  return hands;
}

Hands deal_sorted(const Problem& batch, std::int64_t rounds, std::int64_t tokens) {
  Hands hands(static_cast<std::size_t>(rounds));
  std::size_t round = hands.size() - 1;
  std::int64_t held = 0;
  for (std::size_t i = batch.sequences.size(); i-- > 0;) {
    const Sequence& sequence = batch.sequences[i];
    if (round > 0 && held + sequence.tokens > tokens && !hands[round].empty()) {
      --round;
      held = 0;
    }
    held += sequence.tokens;
    hands[round].push_back(sequence);
  }
  for (auto& hand : hands) {
    sort_longest_first(hand);
  }
  return hands;
}

}  // namespace nsp
