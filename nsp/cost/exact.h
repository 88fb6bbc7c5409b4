// Exact products and quotients of costs: 128 bits inside, saturating, so that no input overflows.
#pragma once

#include <cstdint>

namespace nsp {

using Wide = unsigned __int128;

// Nearly 20 hours in nanoseconds: no cost of one sequence, node or layer is taken for larger.
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 46;

// ceil(numerator / denominator), at most kMostNanoseconds.
constexpr std::int64_t ceil_ratio(Wide numerator, std::int64_t denominator) {
  const Wide divisor = static_cast<Wide>(denominator);
  constexpr Wide kShort = UINT64_MAX;
  if (numerator <= kShort) {  // one hardware division instead of a library call
    const auto low = static_cast<std::uint64_t>(numerator);
    const auto small = static_cast<std::uint64_t>(denominator);
    const std::uint64_t quotient = low / small + (low % small != 0);
    return quotient < static_cast<std::uint64_t>(kMostNanoseconds)
               ? static_cast<std::int64_t>(quotient)
               : kMostNanoseconds;
  }
  const Wide quotient = numerator / divisor + (numerator % divisor != 0);
  return quotient < static_cast<Wide>(kMostNanoseconds) ? static_cast<std::int64_t>(quotient)
                                                        : kMostNanoseconds;
}

constexpr Wide wide(std::int64_t value) {
  return static_cast<Wide>(value);
}

}  // namespace nsp
