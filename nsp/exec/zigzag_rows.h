// Which rows of a zigzag cut meet in attention: plain numbers, no tensors.
//
// Ring index i of r holds pieces i ("lower") and 2r - 1 - i ("upper") of each sequence, in its rows
// sequence by sequence, lower first. Its queries see the pieces before their own and their own,
// causally:
//
//   keys of          lower queries      upper queries
//   an index below   its lower piece    its lower piece
//   its own          causal             lower piece, causal
//   an index above   nothing            both pieces
//
// Only the own part has a mask. Pieces may be empty.
#pragma once

#include <cstdint>
#include <vector>

namespace nsp {

struct ZigzagPieces {
  std::int32_t ring = 2;
  std::vector<std::vector<std::int64_t>> tokens{};  // [sequence][piece], 2 * ring pieces
};

// Queries and their keys: chunk i of the queries sees chunk i of the keys, neither empty.
struct ZigzagChunks {
  std::vector<std::int64_t> queries{};  // rows of the index, chunk by chunk
  std::vector<std::int64_t> keys{};     // rows of those received, likewise
  std::vector<std::int64_t> query_lengths{};
  std::vector<std::int64_t> key_lengths{};
};

// Rows that an index holds.
std::int64_t zigzag_tokens(const ZigzagPieces& pieces, std::int32_t index);

// Of each sequence, where there are any. One causal launch over them is the attention of own rows.
std::vector<std::int64_t> own_lengths(const ZigzagPieces& pieces, std::int32_t index);

// The rows of index `from` that index `to` needs, in order: all (also for itself), or the lower
// pieces.
std::vector<std::int64_t> sent_rows(const ZigzagPieces& pieces, std::int32_t from, std::int32_t to);

// What the queries of `index` see of the rows that came from index `source` alone, another one:
// everything in a chunk, no mask.
ZigzagChunks ring_chunks(const ZigzagPieces& pieces, std::int32_t index, std::int32_t source);

// Each piece of `index` as a chunk of queries, over the rows that came from all indices in turn,
// its own included. Its keys end with its own piece (causal, aligned at the end), or before it (no
// mask).
ZigzagChunks gather_chunks(const ZigzagPieces& pieces, std::int32_t index, bool own_piece);

}  // namespace nsp
