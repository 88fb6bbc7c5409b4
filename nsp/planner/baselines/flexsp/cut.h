// Cuts of a list that is sorted longest first: into micro-batches, and into buckets of like length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nsp {

// Where consecutive pieces end (the last end: the list's size). None is empty.
using Ends = std::vector<std::size_t>;

// At most `count` pieces; the largest sum of tokens of any is the least possible.
Ends cut_evenly(std::span<const std::int64_t> tokens, std::int64_t count);

// At most `most` pieces; the sum over the list of (longest of its piece - itself) is the least
// possible. Equal lengths share a piece.
Ends cut_buckets(std::span<const std::int64_t> tokens, std::size_t most);

}  // namespace nsp
