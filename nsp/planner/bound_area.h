// What the sequences of a batch cost at least: the sums that lower_bound compares with what the
// ranks have.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/cost/exact.h"

namespace nsp {

// A sequence run in one way; nanoseconds of one layer, forward + backward.
struct DegreeCost {
  std::int32_t degree = 1;
  std::int64_t alone = 0;      // of its slowest rank when nothing else runs, without dense_fixed
  std::int64_t area = 0;       // x ranks, dense included
  std::int64_t straddled = 0;  // the same where part of the node's ranks are paid in tokens
  std::int64_t fixed = 0;      // of a node of this way, beside its sequences
};

// All sequences of one length, in the ways that hold their tokens; the largest degree always
// counts.
struct LengthCost {
  std::int64_t tokens = 0;
  std::int64_t count = 0;
  std::vector<DegreeCost> degrees;
};

constexpr std::int64_t kNever = INT64_MAX;

// `ways` by increasing degree. token_budget 0: every degree holds it. `count` is 0.
LengthCost length_cost(const CostModel& model,
                       std::int64_t tokens,
                       std::span<const Way> ways,
                       std::int64_t token_budget);

// Least area of a sequence whose degree must fit under `room`, the nanoseconds that a round leaves
// beside dense_fixed; kNever if none does. The fixed seconds of its node are charged by its share.
std::int64_t charged_area(const DegreeCost& cost, std::int64_t room);
std::int64_t least_area(const LengthCost& length, std::int64_t room);
std::int64_t least_straddled(const LengthCost& length, std::int64_t room);

class BatchArea {
 public:
  // token_budget 0: no budget.
  BatchArea(const CostModel& model,
            std::span<const std::int64_t> tokens,
            std::span<const Way> ways,
            std::int64_t token_budget);

  // Sum of least areas without any charge: what `world` ranks need at least, a rank.
  std::int64_t least(std::int32_t world) const;
  // Sets the lengths aside whose cheapest degree is the choice in every room from this one on. With
  // a token budget those that would fill a quarter of the room stay.
  void settle(std::int64_t room);

  // Longest first.
  const std::vector<LengthCost>& open() const { return open_; }
  // Sum of the least areas of what is settled.
  Wide settled_area(std::int64_t room) const;
  // Sum over what is settled of the smaller of its area and `price` nanoseconds for every
  // token_budget tokens.
  Wide settled_price(std::int64_t room, std::int64_t price) const;

 private:
  struct Step {  // sums over the lengths of fewest nanoseconds a token, up to one
    std::int64_t straddled = 0;
    std::int64_t tokens = 0;
    Wide sum_straddled = 0;
    Wide sum_tokens = 0;
  };
  struct Settled {
    Wide area = 0;
    std::vector<Step> steps;
  };

  std::int64_t token_budget_;
  std::vector<LengthCost> open_;
  std::map<std::int64_t, Settled> settled_;  // by a node's fixed nanoseconds
};

}  // namespace nsp
