#include "nsp/planner/deal_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nsp/base/random.h"

namespace nsp {
namespace {

constexpr std::uint64_t kSeed = 2609'22755;
constexpr std::int64_t kStages = 16;

class DealSearch {
 public:
  DealSearch(const RoundEstimate& estimate, const Hands& hands)
      : estimate_(estimate), hands_(estimate.hands_of(hands)), random_(kSeed) {
    for (RoundHand& hand : hands_) {
      steps_.push_back(estimate_.step(hand));
      sum_ += steps_.back();
      excess_ += excess(hand);
    }
    best_ = hands_;
    best_key_ = {excess_, sum_};
  }

  DealFound run(std::int64_t trials);

 private:
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  std::int64_t excess(const RoundHand& hand) const {
    return std::max<std::int64_t>(0, hand.tokens - estimate_.most_tokens());
  }
  void propose(RoundHand& from, RoundHand& to);
  void move_long(RoundHand& from, RoundHand& to);
  void move_shorts(RoundHand& from, RoundHand& to, std::int64_t tokens);
  void trial(std::int64_t threshold);

  const RoundEstimate& estimate_;
  std::vector<RoundHand> hands_;
  std::vector<std::int64_t> steps_;
  Random random_;
  std::int64_t sum_ = 0;
  std::int64_t excess_ = 0;
  std::vector<RoundHand> best_;
  std::pair<std::int64_t, std::int64_t> best_key_;
};

void DealSearch::move_long(RoundHand& from, RoundHand& to) {
  if (!from.longs.empty()) {
    estimate_.add(to, estimate_.take_long(from, below(from.longs.size())));
  }
}

// From one class on, longer or shorter ones, until so many tokens have moved.
void DealSearch::move_shorts(RoundHand& from, RoundHand& to, std::int64_t tokens) {
  const std::size_t classes = estimate_.classes();
  if (classes == 0) {
    return;
  }
  const std::size_t first = below(classes);
  for (std::size_t i = 0; i < classes; ++i) {
    const std::size_t at = (first + i) % classes;
    while (!from.shorts[at].empty() && estimate_.tokens(from.shorts[at].back()) <= tokens) {
      const std::uint32_t sequence = estimate_.take_short(from, at);
      tokens -= estimate_.tokens(sequence);
      estimate_.add(to, sequence);
    }
  }
}

void DealSearch::propose(RoundHand& from, RoundHand& to) {
  const std::size_t kind = below(8);
  if (kind < 2) {
    move_long(from, to);
  } else if (kind < 4) {
    move_long(from, to);
    move_long(to, from);
  } else if (kind < 6) {  // a long one against short ones
    const std::int64_t before = from.tokens;
    move_long(from, to);
    move_shorts(to, from, before - from.tokens);
  } else {
    const std::int64_t part = (from.tokens >> (1 + below(8))) + 1;
    move_shorts(from, to, part);
    if (kind == 7) {
      move_shorts(to, from, part);
    }
  }
}

void DealSearch::trial(std::int64_t threshold) {
  const std::size_t a = below(hands_.size());
  const std::size_t b = (a + 1 + below(hands_.size() - 1)) % hands_.size();
  const std::pair before(hands_[a], hands_[b]);
  propose(hands_[a], hands_[b]);
  const std::int64_t excess_now = excess_ + excess(hands_[a]) + excess(hands_[b]) -
                                  excess(before.first) - excess(before.second);
  const std::pair steps(estimate_.step(hands_[a]), estimate_.step(hands_[b]));
  const std::int64_t sum_now = sum_ + steps.first + steps.second - steps_[a] - steps_[b];
  if (excess_now > excess_ || (excess_now == excess_ && sum_now > sum_ + threshold)) {
    hands_[a] = before.first;
    hands_[b] = before.second;
    return;
  }
  sum_ = sum_now;
  excess_ = excess_now;
  steps_[a] = steps.first;
  steps_[b] = steps.second;
  if (std::pair(excess_, sum_) < best_key_) {
    best_key_ = {excess_, sum_};
    best_ = hands_;
  }
}

DealFound DealSearch::run(std::int64_t trials) {
  if (hands_.size() > 1) {
    std::int64_t threshold = sum_ / 256;
    for (std::int64_t stage = 1; stage <= kStages; ++stage) {
      for (std::int64_t i = 0; i < trials / kStages; ++i) {
        trial(stage == kStages
                  ? 0
                  : static_cast<std::int64_t>(below(static_cast<std::size_t>(threshold) + 1)));
      }
      threshold -= threshold / 4;
    }
  }
  return {.hands = estimate_.sequences_of(best_), .step = best_key_.second};
}

}  // namespace

DealFound improve_deal(const RoundEstimate& estimate, const Hands& hands, std::int64_t trials) {
  return DealSearch(estimate, hands).run(trials);
}

}  // namespace nsp
