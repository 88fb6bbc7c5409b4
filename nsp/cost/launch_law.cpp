#include "nsp/cost/launch_law.h"

#include <algorithm>

#include "nsp/cost/exact.h"

namespace nsp {
namespace {

constexpr std::int64_t kCubeable = std::int64_t{1} << 41;

Wide cube(std::int64_t value) {
  return wide(value) * wide(value) * wide(value);
}

// Halley's iteration in floating point only guesses; the integer steps that follow make the result
// exact, whatever the rounding of the machine. From above: (1 + t)^(1/3) <= 1 + t / 3, off by less
// than t^2 / 9; an iteration cubes the error, so two leave a few units of 2^41, one where t is
// small.
std::int64_t guess(std::int64_t large, std::int64_t small) {
  const double ratio = static_cast<double>(small) / static_cast<double>(large);
  const double t = ratio * ratio * ratio;
  const double sum = 1 + t;
  double root = 1 + t / 3;
  for (int i = t < 0.01 ? 1 : 0; i < 2; ++i) {
    const double cubed = root * root * root;
    root *= (cubed + 2 * sum) / (2 * cubed + sum);
  }
  return static_cast<std::int64_t>(root * static_cast<double>(large));
}

}  // namespace

std::int64_t launch_law(std::int64_t work, std::int64_t path) {
  int shift = 0;
  while ((std::max(work, path) >> shift) >= kCubeable) {
    ++shift;
  }
  const std::int64_t large = std::max(work, path) >> shift;
  const std::int64_t small = std::min(work, path) >> shift;
  if (small == 0) {
    return std::max(work, path);
  }
  const Wide sum = cube(large) + cube(small);
  std::int64_t root = guess(large, small);
  while (cube(root) > sum) {
    --root;
  }
  while (cube(root + 1) <= sum) {
    ++root;
  }
  return std::max({root << shift, work, path});
}

}  // namespace nsp
