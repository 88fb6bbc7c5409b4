// Plans whose levels are cut at random.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/make_plan.h"

namespace nsp {

// Cuts two in three of the levels that have sequences of more than one length, anywhere.
inline void cut_at_random(Round& round, Random& random) {
  for (const std::int32_t degree : exchanged_degrees(round)) {
    std::set<std::int64_t> lengths;
    for (const Placement& placement : round.placements) {
      if (placement.node.degree == degree) {
        lengths.insert(placement.tokens);
      }
    }
    if (lengths.size() > 1 && random.below(3) > 0) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(lengths.size() - 1));
      round.schedule.cuts.push_back({.degree = degree, .tokens = *std::next(lengths.begin(), at)});
    }
  }
  round.schedule.order = default_order(round);
}

inline Plan with_random_cuts(Plan plan, std::uint64_t seed) {
  Random random(seed);
  for (Round& round : plan.rounds) {
    cut_at_random(round, random);
  }
  seal(plan);
  return plan;
}

}  // namespace nsp
