// Static sequence parallelism: one degree for all sequences, as most systems run it.
#pragma once

#include <cstdint>
#include <optional>

#include "nsp/plan/way.h"
#include "nsp/planner/problem.h"

namespace nsp {

// What the groups are balanced by. Most users have tokens: sequences go, longest first, where the
// fewest tokens are, though attention grows with the square.
enum class Balance : std::uint8_t { kCost, kTokens };

// How a sequence runs at `degree`: of the problem's backends usp where it is one and the degree
// spans hosts, else ulysses. Nothing if none of them can.
std::optional<Way> static_way(const Problem& problem, std::int32_t degree);

// Longest first, each onto the least-loaded group of `degree` ranks that stays within the token
// budget, else onto the one with the fewest tokens (the result is then infeasible). Infeasible and
// empty where the degree has no way.
Solution static_degree(const Problem& problem,
                       std::int32_t degree,
                       Balance balance = Balance::kCost);

}  // namespace nsp
