// Layout: who owns which tokens. Derived from the plan, never stored; no padding, any length, any
// degree.
//
// A sequence of L tokens cut into n pieces has boundaries floor((i*L + c)/n), c = sequence mod n,
// so the remainder does not always fall on the same rank. Contiguous backends (local, ulysses) cut
// n = degree pieces, rank i of the node owns piece i. The others cut zigzag, n = 2r for a ring or
// gather of r: ring index i owns pieces i and 2r - 1 - i, so that causal work is even; usp cuts
// each piece again over its u inner ranks (rank = ring index x u + inner index). A rank's row of
// tokens is ordered by level from root to leaf, then by backend, then by wave (long, short:
// wave.h), then by mark (save_qkv, save, offload, recompute), then longest sequence first (ties by
// index), then by token: each (level, backend, wave) is one block, and so is what it saves.
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

// The one or two pieces that the i-th rank of the placement's node owns, lower first; empty ones
// too.
std::vector<Segment> pieces_of(const Placement& placement, std::int32_t i);

// Their tokens.
std::int64_t tokens_of(const Placement& placement, std::int32_t i);

// Placements in row order: root to leaf, backend, wave, mark, longest first, index.
std::vector<std::int32_t> row_order(const Round& round);

// Of each placement, whether it runs before everything else on the compute queue: of a rank's leaf
// sequences, in row order, the first schedule.leaf_first. Without that list none does.
std::vector<bool> runs_first(const Round& round);

// One rank's row. Segments with no token are left out. A rank that owns no token at all gets one
// dummy token (models fail on empty rows): sequence -1, [0, 1), a leaf that attends only to itself.
std::vector<Segment> rank_row(const Round& round, std::int32_t rank);

// Tokens of a sequence that a rank of its node owns.
std::int64_t owned_tokens(const Placement& placement, std::int32_t rank);

// Tokens that each rank owns (dummy tokens not counted).
std::vector<std::int64_t> rank_tokens(const Round& round, std::int32_t world);

}  // namespace nsp
