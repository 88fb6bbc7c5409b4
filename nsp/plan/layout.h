// Layout: who owns which tokens. Derived from the plan, never stored; no padding, any length, any
// degree.
//
// A sequence of L tokens cut into n pieces has boundaries floor((i*L + c)/n), c = sequence mod n,
// so the remainder does not always fall on the same rank. Contiguous backends (local, ulysses) cut
// n = degree pieces, rank i of the node owns piece i. A rank's row of tokens is ordered by level
// from root to leaf, then by backend, then longest sequence first (ties by index): each (level,
// backend) is one block.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

// Start of piece i (0 <= i <= pieces) of a sequence; boundary(pieces) = tokens.
constexpr std::int64_t boundary(std::int64_t tokens,
                                std::int64_t sequence,
                                std::int64_t pieces,
                                std::int64_t i) {
  return (i * tokens + sequence % pieces) / pieces;
}

// The tokens [begin, end) of one sequence that a rank owns, in this order in its row.
struct Segment {
  std::int64_t sequence = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t degree = 1;
  Backend backend = Backend::kLocal;
  std::int32_t placement = 0;  // index in Round::placements; -1: the dummy token

  std::int64_t tokens() const { return end - begin; }
  bool dummy() const { return placement < 0; }
  bool operator==(const Segment&) const = default;
};

// Placements in row order: root to leaf, backend, longest first, index.
std::vector<std::int32_t> row_order(const Round& round);

// One rank's row. Segments with no token are left out. A rank that owns no token at all gets one
// dummy token (models fail on empty rows): sequence -1, [0, 1), a leaf that attends only to itself.
// Backends other than local and ulysses throw BadInput: the executor does not have them yet.
std::vector<Segment> rank_row(const Round& round, std::int32_t rank);

// Tokens of a sequence that a rank of its node owns.
std::int64_t owned_tokens(const Placement& placement, std::int32_t rank);

// Tokens that each rank owns (dummy tokens not counted).
std::vector<std::int64_t> rank_tokens(const Round& round, std::int32_t world);

}  // namespace nsp
