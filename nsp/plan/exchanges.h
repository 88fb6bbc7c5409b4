// What travels for each backend: which pieces of keys and values a ring index sends to another, and
// how many exchanges a pass issues. Derived from the way alone, so that every rank issues the same
// ones, whatever it holds.
//
// Of the 2r pieces of a zigzag cut index i owns i and 2r - 1 - i; its queries see the pieces before
// their own. So each index needs the lower piece of every other, and the upper piece of those after
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"
#include "nsp/plan/way.h"

namespace nsp {

// Whether ring index `to` needs the upper piece of index `from` beside its lower one.
constexpr bool needs_upper(std::int32_t to, std::int32_t from) {
  return to < from;
}

struct ExchangeCount {
  std::int64_t forward = 0;
  std::int64_t backward = 0;

  bool operator==(const ExchangeCount&) const = default;
};

// Of one layer's pass over a (level, backend, wave). `copies`: inner ranks of usp that work on the
// same KV head. Above 1 its keys and values cross once for all of them, and are passed on among
// them by an exchange of their own.
ExchangeCount exchanges_of(const Way& way, std::int64_t copies = 1);

// The ways above degree 1 of a round: root to leaf, then by backend. One way is one block of a
// rank's row and issues its exchanges once; one for each of its waves (wave.h) where its level is
// cut.
std::vector<Way> exchanged_ways(const Round& round);

}  // namespace nsp
