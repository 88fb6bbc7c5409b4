// Plans whose placements bear random marks.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/plan/make_plan.h"

namespace nsp {

// Each placement one of `marks`; some levels of some rounds as a whole.
inline Plan with_random_marks(Plan plan, std::uint64_t seed, const std::vector<Mark>& marks) {
  Random random(seed);
  for (Round& round : plan.rounds) {
    const auto whole = static_cast<std::int32_t>(1U << random.below(4));  // this degree alike
    const Mark alike = marks[random.below(marks.size())];
    for (Placement& placement : round.placements) {
      placement.mark = placement.node.degree == whole ? alike : marks[random.below(marks.size())];
    }
  }
  seal(plan);
  return plan;
}

inline Plan with_random_marks(Plan plan, std::uint64_t seed) {
  return with_random_marks(
      std::move(plan), seed, {Mark::kRecompute, Mark::kOffload, Mark::kSave, Mark::kSaveQkv});
}

}  // namespace nsp
