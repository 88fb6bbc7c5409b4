// Our own generator: the same numbers on every machine and standard library.
// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#pragma once

#include <cstdint>

namespace nsp {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  // Uniform in [0, bound), bound >= 1, without modulo bias.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject = (0 - bound) % bound;
    std::uint64_t value = next();
    while (value < reject) {
      value = next();
    }
    return value % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace nsp
