// The order in which an epoch visits the samples.
#pragma once

#include <cstdint>
#include <vector>

namespace nsp {

// A permutation of 0..count-1 (Fisher-Yates on our own generator): equal on every rank and machine.
std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace nsp
