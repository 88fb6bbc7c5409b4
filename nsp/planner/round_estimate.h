// What a round of given sequences will take, without planning it: the one-round bound (bound.h,
// bound_budget.h) with few prices and with the short sequences summed by length class.
//
// The bound does not see how sequences pack: planned rounds were above it by what coarse sequences
// (more than an eighth of the token budget) hold beyond 60 % of all tokens, times 0.6, and by what
// the fine ones' area lacks to 8 % of the round's: that is added. So of two ways to deal a batch
// the estimate tells the better one in microseconds. Long: a sequence that takes more than a sixth
// of a mean round's seconds at degree 1; long ones are looked at one by one, at each degree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/planner/bound_area.h"
#include "nsp/planner/deal.h"

namespace nsp {

// A round's sequences, by position in the batch (longest first).
struct RoundHand {
  std::vector<std::uint32_t> longs;
  std::vector<std::vector<std::uint32_t>> shorts;  // by class
  std::vector<std::int64_t> area;                  // of a class
  std::vector<std::int64_t> class_tokens;
  std::int64_t tokens = 0;
  std::int64_t room = 0;  // the last estimate, where the next begins
};

class RoundEstimate {
 public:
  // Borrows the batch. Costs are those of a batch dealt to about so many rounds.
  RoundEstimate(const Problem& batch, std::int64_t rounds);

  std::vector<RoundHand> hands_of(const Hands& hands) const;
  Hands sequences_of(const std::vector<RoundHand>& hands) const;

  void add(RoundHand& hand, std::uint32_t sequence) const;
  // Takes the last of a class out; the class is not empty.
  std::uint32_t take_short(RoundHand& hand, std::size_t of_class) const;
  std::uint32_t take_long(RoundHand& hand, std::size_t place) const;

  std::size_t classes() const { return classes_; }
  std::int64_t tokens(std::uint32_t sequence) const { return batch_.sequences[sequence].tokens; }
  // Most tokens that a hand should hold, so that planning it has some play.
  std::int64_t most_tokens() const { return most_tokens_; }

  // Nanoseconds of the round in a whole step: all layers and FSDP traffic; 0 for an empty hand.
  std::int64_t step(RoundHand& hand) const;

 private:
  // Token budgets that the classes and then the long ones fill, in 2^16 parts.
  std::vector<std::int64_t> filled(const RoundHand& hand) const;
  std::int64_t load(RoundHand& hand) const;
  std::int64_t packing(const RoundHand& hand, std::int64_t load) const;
  bool fits(const RoundHand& hand,
            std::int64_t room,
            const std::vector<std::int64_t>& filled) const;

  const Problem& batch_;
  std::int64_t most_tokens_ = 0;
  std::size_t classes_ = 0;
  std::vector<std::uint32_t> class_of_;  // by sequence; kLong for a long one
  std::vector<std::int64_t> area_;       // by sequence, at its cheapest degree
  std::vector<std::uint8_t> coarse_;     // by class
  std::vector<LengthCost> long_;         // the first sequences of the batch
  std::int64_t forward_ = 0;             // of 2^16 parts of a load
};

}  // namespace nsp
