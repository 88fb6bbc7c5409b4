// What one rank holds and exchanges at one level of a round, or in one of its waves, by one
// backend: plain numbers, no tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/exec/zigzag_rows.h"
#include "nsp/plan/plan.h"
#include "nsp/plan/way.h"

namespace nsp {

// Of all ranks of a wave of a level, equal on all: most rows of a rank, and most rows of a node
// that lie on other ranks than one of its own.
struct LevelRows {
  std::int64_t most = 0;
  std::int64_t most_elsewhere = 0;

  bool operator==(const LevelRows&) const = default;
};

// The rank's rows of one (level, backend, wave). Rows that are exchanged for heads arrive ordered
// by (source rank, sequence); attention needs them by (sequence, position).
struct Block {
  std::int32_t degree = 1;
  std::int32_t level_degree = 1;  // of the tree's level: the degree, or more inside usp
  Backend backend = Backend::kLocal;
  Wave wave = Wave::kLong;      // all of a level that is not cut
  std::int32_t inner = 1;       // ranks that exchange rows for heads: ulysses, usp
  std::int32_t first_rank = 0;  // of the rank's node
  std::int32_t rank = 0;
  std::int64_t begin = 0;                    // first row in the rank's row of tokens
  std::int64_t tokens = 0;                   // rows of this rank
  std::vector<std::int64_t> lengths{};       // the node's whole sequences, longest first
  std::vector<std::int64_t> rank_tokens{};   // rows that each of the inner ranks holds
  std::vector<std::int64_t> to_sequences{};  // row i by sequence is received row to_sequences[i]
  ZigzagPieces pieces{};                     // gather, ring, usp: of the sequences in `lengths`
  Transport transport = Transport::kCollective;
  std::int64_t fetch_nanoseconds = 0;  // of PeerCopies, if they are the transport
  LevelRows level{};
};

// A block for each wave of each of `ways` (all above degree 1, root to leaf, then by backend), the
// short wave before the long one, then the leaf's (with the dummy token of a rank that has no
// other; to_sequences empty). A node without sequences has a block without rows.
std::vector<Block> make_blocks(const Round& round, std::int32_t rank, const std::vector<Way>& ways);

// The block of ulysses among usp's inner ranks: the rows of the rank's ring index.
Block inner_block(const Block& usp);

// The leaf's first `sequences` sequences as a block of their own; `leaf` keeps the rest.
Block take_first(Block& leaf, std::int32_t sequences);

// The window that the block's kernel launch needs: 0 (whole sequences) where none is longer.
std::int64_t window_within(const Block& block, std::int64_t window);

}  // namespace nsp
