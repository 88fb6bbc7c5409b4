#include "nsp/planner/round_estimate.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace nsp {
namespace {

constexpr std::uint32_t kLong = UINT32_MAX;
constexpr std::int64_t kPrices = 6;
constexpr std::int64_t kPlay = 16;  // a part of the token budget
constexpr unsigned kPartBits = 16;
constexpr std::int64_t kParts = std::int64_t{1} << kPartBits;

// Four classes an octave.
std::uint64_t length_class(std::int64_t tokens) {
  const auto length = static_cast<std::uint64_t>(tokens);
  const auto bits = static_cast<std::uint64_t>(std::bit_width(length));
  const std::uint64_t next = bits > 2 ? (length >> (bits - 3)) & 3U : 0;
  return 4 * bits + next;
}

std::int64_t cheapest(const LengthCost& cost) {
  return std::ranges::min_element(cost.degrees, {}, &DegreeCost::area)->area;
}

std::int64_t least_alone(const LengthCost& cost) {
  return std::ranges::min_element(cost.degrees, {}, &DegreeCost::alone)->alone;
}

// The least number from `low` on that fits, to 1 in 1024: from `guess` up or down in growing steps
// until one fits and one does not, then by halves.
template <typename Fits>
std::int64_t least_fitting(std::int64_t low, std::int64_t guess, const Fits& fits) {
  std::int64_t high = std::max(low, guess);
  std::int64_t step = high / 256 + 1;
  if (fits(high)) {
    for (; high > low; step *= 2) {
      const std::int64_t lower = std::max(low, high - step);
      if (!fits(lower)) {
        low = lower;
        break;
      }
      high = lower;
    }
  } else {
    do {
      low = high;
      high += step;
      step *= 2;
    } while (!fits(high));
  }
  while (high - low > high / 1024 + 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

RoundEstimate::RoundEstimate(const Problem& batch, std::int64_t rounds) : batch_(batch) {
  const std::vector<Way> ways = batch.model->allowed_ways(batch.sp_max, batch.backends);
  const std::vector<Sequence>& sequences = batch.sequences;
  const Passes dense = batch.model->dense(sum_tokens(sequences));
  Passes all = dense;
  std::int64_t sum = dense.sum();
  for (const Sequence& sequence : sequences) {
    const Passes work = batch.model->sequence(sequence.tokens, 1).compute;
    all += work;
    sum += work.sum();
  }
  forward_ = static_cast<std::int64_t>(wide(all.forward) * wide(kParts) /
                                       wide(std::max<std::int64_t>(1, all.sum())));
  const std::int64_t mean = sum / batch.world / rounds;
  std::map<std::uint64_t, std::uint32_t> classes;
  LengthCost cost;
  for (const Sequence& sequence : sequences) {
    if (sequence.tokens != cost.tokens) {
      cost = length_cost(*batch.model, sequence.tokens, ways, batch.token_budget);
    }
    area_.push_back(cheapest(cost));
    if (area_.back() > mean / 6 && long_.size() + 1 == area_.size()) {
      long_.push_back(cost);
      class_of_.push_back(kLong);
      continue;
    }
    const auto next = static_cast<std::uint32_t>(classes.size());
    class_of_.push_back(classes.try_emplace(length_class(sequence.tokens), next).first->second);
    if (class_of_.back() == next) {
      coarse_.push_back(sequence.tokens > batch.token_budget / 8 ? 1 : 0);
    }
  }
  classes_ = classes.size();
  const std::int64_t room = batch.world * batch.token_budget;
  const std::int64_t even = sum_tokens(sequences) / rounds;
  most_tokens_ = std::min(room, std::max(room - room / 64, even + even / 128));
}

void RoundEstimate::add(RoundHand& hand, std::uint32_t sequence) const {
  hand.tokens += tokens(sequence);
  const std::uint32_t of_class = class_of_[sequence];
  if (of_class == kLong) {
    hand.longs.push_back(sequence);
    return;
  }
  hand.shorts[of_class].push_back(sequence);
  hand.area[of_class] += area_[sequence];
  hand.class_tokens[of_class] += tokens(sequence);
}

std::uint32_t RoundEstimate::take_short(RoundHand& hand, std::size_t of_class) const {
  const std::uint32_t sequence = hand.shorts[of_class].back();
  hand.shorts[of_class].pop_back();
  hand.area[of_class] -= area_[sequence];
  hand.class_tokens[of_class] -= tokens(sequence);
  hand.tokens -= tokens(sequence);
  return sequence;
}

std::uint32_t RoundEstimate::take_long(RoundHand& hand, std::size_t place) const {
  const std::uint32_t sequence = hand.longs[place];
  hand.longs[place] = hand.longs.back();
  hand.longs.pop_back();
  hand.tokens -= tokens(sequence);
  return sequence;
}

std::vector<RoundHand> RoundEstimate::hands_of(const Hands& hands) const {
  std::map<std::int64_t, std::uint32_t> position;
  for (std::size_t i = 0; i < batch_.sequences.size(); ++i) {
    position[batch_.sequences[i].index] = static_cast<std::uint32_t>(i);
  }
  std::vector<RoundHand> result;
  for (const std::vector<Sequence>& hand : hands) {
    RoundHand& round = result.emplace_back();
    round.shorts.resize(classes_);
    round.area.resize(classes_);
    round.class_tokens.resize(classes_);
    for (const Sequence& sequence : hand) {
      add(round, position[sequence.index]);
    }
  }
  return result;
}

Hands RoundEstimate::sequences_of(const std::vector<RoundHand>& hands) const {
  Hands result;
  for (const RoundHand& hand : hands) {
    std::vector<Sequence>& sequences = result.emplace_back();
    for (const std::uint32_t sequence : hand.longs) {
      sequences.push_back(batch_.sequences[sequence]);
    }
    for (const auto& members : hand.shorts) {
      for (const std::uint32_t sequence : members) {
        sequences.push_back(batch_.sequences[sequence]);
      }
    }
    sort_longest_first(sequences);
  }
  return result;
}

// The one-round test of bound_budget.h; the largest price makes it the test of areas.
bool RoundEstimate::fits(const RoundHand& hand,
                         std::int64_t room,
                         const std::vector<std::int64_t>& filled) const {
  for (std::int64_t i = kPrices; i > 0; --i) {
    const std::int64_t price = room / kPrices * i;
    const auto in_tokens = [&](std::size_t which) {
      return static_cast<std::int64_t>((wide(filled[which]) * wide(price)) >> kPartBits);
    };
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < classes_; ++c) {
      sum += std::min(hand.area[c], in_tokens(c));
    }
    for (std::size_t l = 0; l < hand.longs.size(); ++l) {
      std::int64_t outside = in_tokens(classes_ + l);
      std::int64_t beyond = kNever;
      for (const DegreeCost& at : long_[hand.longs[l]].degrees) {
        if (at.alone <= room) {
          outside = std::min(outside, at.area);
          beyond = std::min(beyond, at.area - at.degree * (room - price));
        }
      }
      sum += std::max(outside, beyond);
    }
    if (sum > batch_.world * price) {
      return false;
    }
  }
  return true;
}

std::vector<std::int64_t> RoundEstimate::filled(const RoundHand& hand) const {
  const std::int64_t mean = hand.tokens / batch_.world;
  const std::int64_t budget =
      std::max(batch_.token_budget - batch_.token_budget / kPlay, mean + mean / 64 + 1);
  std::vector<std::int64_t> filled;
  for (const std::int64_t tokens : hand.class_tokens) {
    filled.push_back((tokens << kPartBits) / budget);
  }
  for (const std::uint32_t sequence : hand.longs) {
    filled.push_back((tokens(sequence) << kPartBits) / budget);
  }
  return filled;
}

// The search begins at the last estimate.
std::int64_t RoundEstimate::load(RoundHand& hand) const {
  std::int64_t area = std::reduce(hand.area.begin(), hand.area.end());
  std::int64_t low = 0;
  for (const std::uint32_t sequence : hand.longs) {
    area += area_[sequence];
    low = std::max(low, least_alone(long_[sequence]));
  }
  const std::vector<std::int64_t> parts = filled(hand);
  hand.room = least_fitting(std::max(low, area / batch_.world), hand.room, [&](std::int64_t room) {
    return fits(hand, room, parts);
  });
  return hand.room + packing(hand, hand.room) + batch_.model->dense_fixed().sum();
}

std::int64_t RoundEstimate::packing(const RoundHand& hand, std::int64_t load) const {
  std::int64_t coarse = hand.tokens;
  std::int64_t fine_area = 0;
  for (std::size_t c = 0; c < classes_; ++c) {
    coarse -= coarse_[c] != 0 ? 0 : hand.class_tokens[c];
    fine_area += coarse_[c] != 0 ? 0 : hand.area[c];
  }
  const std::int64_t room = batch_.world * batch_.token_budget;
  const std::int64_t crowded = std::max<std::int64_t>(0, 1000 * coarse / room - 600) * 6 / 10;
  const auto fine =
      static_cast<std::int64_t>(1000 * wide(fine_area) / wide(load * batch_.world + 1));
  return load / 1000 * (crowded + std::max<std::int64_t>(0, 80 - fine));
}

std::int64_t RoundEstimate::step(RoundHand& hand) const {
  if (hand.tokens == 0) {
    return 0;
  }
  const std::int64_t all = load(hand);
  const auto forward = static_cast<std::int64_t>(wide(all) * wide(forward_) / wide(kParts));
  return batch_.model->round_step(
      {.forward = forward, .backward = all - forward}, hand.tokens / batch_.world, batch_.world);
}

}  // namespace nsp
