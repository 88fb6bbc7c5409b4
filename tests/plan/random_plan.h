// Random sound plans for property tests.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "nsp/base/random.h"
#include "nsp/plan/make_plan.h"

namespace nsp {

// World 1, 2, ... 32 as one tree or a forest; up to 40 sequences of up to 5000 tokens; 1 to 3
// rounds.
inline Plan random_plan(std::uint64_t seed) {
  Random random(seed);
  const std::vector<std::int32_t> worlds = {1, 2, 4, 6, 8, 12, 32};
  const std::int32_t world = worlds[random.below(worlds.size())];
  std::vector<std::int32_t> allowed;
  for (std::int32_t degree = 1; world % degree == 0; degree *= 2) {
    allowed.push_back(degree);
  }
  std::vector<std::vector<Placement>> rounds(1 + random.below(3));
  const auto count = static_cast<std::int64_t>(random.below(41));
  for (std::int64_t sequence = 0; sequence < count; ++sequence) {
    const std::int32_t degree = allowed[random.below(allowed.size())];
    const auto nodes = static_cast<std::uint64_t>(world / degree);
    const Node node = {static_cast<std::int32_t>(random.below(nodes)) * degree, degree};
    const auto tokens =
        static_cast<std::int64_t>(1 + random.below(random.below(2) == 0 ? 10 : 5000));
    rounds[random.below(rounds.size())].push_back(place(sequence, tokens, node));
  }
  return make_plan({.world = world, .sp_max = allowed.back(), .ranks_per_host = world}, rounds);
}

// The same, with every backend: a random way for each sequence, one inner size of usp a level.
inline Plan random_ways_plan(std::uint64_t seed) {
  Random random(seed);
  Plan plan = random_plan(seed);
  std::vector<std::vector<Placement>> rounds;
  std::vector<std::int32_t> inner(64, 2);  // by level, as a power of two
  for (std::size_t level = 2; level < inner.size(); ++level) {
    inner[level] = 2 << random.below(std::min<std::uint64_t>(level - 1, 4));
  }
  for (const Round& round : plan.rounds) {
    rounds.push_back(round.placements);
    for (Placement& placement : rounds.back()) {
      const std::int32_t degree = placement.node.degree;
      if (degree == 1) {
        continue;
      }
      constexpr Backend kBackends[] = {Backend::kUlysses,
                                       Backend::kGather,
                                       Backend::kRing,
                                       Backend::kUspRing,
                                       Backend::kUspGather};
      placement.backend = kBackends[random.below(degree > 2 ? 5 : 3)];
      placement.ulysses_degree = 1;
      if (placement.backend == Backend::kUlysses) {
        placement.ulysses_degree = degree;
      } else if (placement.backend >= Backend::kUspRing) {
        placement.ulysses_degree =
            inner[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(degree)))];
      }
    }
  }
  return make_plan({.world = plan.world, .sp_max = plan.sp_max, .ranks_per_host = plan.world},
                   rounds);
}

}  // namespace nsp
