// What one rank holds and exchanges at one level of a round: plain numbers, no tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

// Of all ranks of a level, equal on all: most rows of a rank, and most rows of a node that lie on
// other ranks than one of its own.
struct LevelRows {
  std::int64_t most = 0;
  std::int64_t most_elsewhere = 0;

  bool operator==(const LevelRows&) const = default;
};

// The rank's rows of one level. Its node's rows arrive ordered by (source rank, sequence);
// attention needs them by (sequence, position).
struct Block {
  std::int32_t degree = 1;
  std::int32_t first_rank = 0;  // of the rank's node
  std::int32_t rank = 0;
  std::int64_t begin = 0;                    // first row in the rank's row of tokens
  std::int64_t tokens = 0;                   // rows of this rank
  std::vector<std::int64_t> lengths{};       // the node's whole sequences, longest first
  std::vector<std::int64_t> rank_tokens{};   // rows that each rank of the node holds
  std::vector<std::int64_t> to_sequences{};  // row i by sequence is received row to_sequences[i]
  Transport transport = Transport::kCollective;
  std::int64_t fetch_nanoseconds = 0;  // of PeerCopies, if they are the transport
  LevelRows level{};
};

// A block for each of `degrees` (all above 1, root to leaf), then the leaf's (with the dummy token
// of a rank that has no other; to_sequences empty). A node without sequences has a block without
// rows.
std::vector<Block> make_blocks(const Round& round,
                               std::int32_t rank,
                               const std::vector<std::int32_t>& degrees);

// The leaf's first `sequences` sequences as a block of their own; `leaf` keeps the rest.
Block take_first(Block& leaf, std::int32_t sequences);

// The window that the block's kernel launch needs: 0 (whole sequences) where none is longer.
std::int64_t window_within(const Block& block, std::int64_t window);

}  // namespace nsp
