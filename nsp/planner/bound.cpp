#include "nsp/planner/bound.h"

#include <algorithm>

#include "nsp/planner/bound_area.h"
#include "nsp/planner/bound_budget.h"
#include "nsp/planner/deal.h"

namespace nsp {
namespace {

// A load of so many rounds is ruled out; proofs may use any of them.
class Loads {
 public:
  Loads(const BatchArea& batch, const BoundWorld& world, std::int64_t dense_fixed)
      : batch_(batch), world_(world), dense_fixed_(dense_fixed) {}

  // Every load below is ruled out for plans of exactly one round; of `rounds` or more.
  std::int64_t least_in_one(std::int64_t from) const {
    return least(from, [&](std::int64_t load) { return ruled_out(load, 1, refuted_in_one); });
  }
  std::int64_t least_in_several(std::int64_t from, std::int64_t rounds) const {
    return least(from,
                 [&](std::int64_t load) { return ruled_out(load, rounds, refuted_in_several); });
  }

 private:
  // Loads grow until one is not ruled out; then the smallest such between that and the last. A plan
  // of a smaller load would be one of a larger load too, so a proof for one load counts for all
  // below.
  template <typename RuledOut>
  static std::int64_t least(std::int64_t from, const RuledOut& ruled_out) {
    std::int64_t low = from - 1;
    std::int64_t high = from;
    while (ruled_out(high)) {
      low = high;
      high += high / 64 + 1;
    }
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (ruled_out(middle) ? low : high) = middle;
    }
    return high;
  }

  template <typename Refuted>
  bool ruled_out(std::int64_t load, std::int64_t rounds, const Refuted& refuted) const {
    const std::int64_t room = load - rounds * dense_fixed_;
    return room < 0 || !has_area(room) ||
           (world_.token_budget > 0 && refuted(batch_, world_, room));
  }

  bool has_area(std::int64_t room) const {
    Wide area = batch_.settled_area(room);
    for (const LengthCost& length : batch_.open()) {
      const std::int64_t smallest = least_area(length, room);
      if (smallest == kNever) {
        return false;
      }
      area += wide(smallest) * wide(length.count);
    }
    return area <= wide(room) * wide(world_.world);
  }

  const BatchArea& batch_;
  const BoundWorld& world_;
  std::int64_t dense_fixed_;
};

}  // namespace

std::int64_t lower_bound(const CostModel& model,
                         std::span<const std::int64_t> tokens,
                         std::int32_t world,
                         std::int32_t sp_max,
                         std::int64_t token_budget,
                         std::span<const Backend> backends) {
  if (tokens.empty()) {
    return 0;
  }
  std::int64_t sum = 0;
  for (const std::int64_t length : tokens) {
    sum += length;
  }
  BatchArea batch(model, tokens, model.allowed_ways(sp_max, backends), token_budget);
  const std::int64_t least = batch.least(world);
  batch.settle(least);
  const BoundWorld ranks{.world = world, .token_budget = model.ep() == 1 ? token_budget : 0};
  const std::int64_t fixed = model.dense_fixed().sum();
  const Loads loads(batch, ranks, fixed);
  const std::int64_t rounds = token_budget == 0 ? 1 : least_rounds(sum, world, token_budget);
  if (rounds > 1) {
    return loads.least_in_several(least + rounds * fixed, rounds);
  }
  const std::int64_t one = loads.least_in_one(least + fixed);
  if (token_budget == 0) {
    return one;
  }
  const std::int64_t two = loads.least_in_several(least + 2 * fixed, 2);
  return std::min(one, two);
}

std::int64_t lower_bound(const Problem& batch) {
  return lower_bound(*batch.model,
                     tokens_of(batch.sequences),
                     batch.world,
                     batch.sp_max,
                     batch.token_budget,
                     batch.backends);
}

}  // namespace nsp
