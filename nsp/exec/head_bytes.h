// Bytes of buffers of a level whose rows are exchanged for heads, by formula. Parts of
// exchange_bytes (buffer_bytes.h).
#pragma once

#include <cstdint>

#include "nsp/exec/buffer_bytes.h"
#include "nsp/exec/parts.h"

namespace nsp {

// Bytes of one row, of the heads that a rank works on.
struct RowBytes {
  std::int64_t query = 0;
  std::int64_t qkv = 0;  // all three
};

struct Sizes {
  std::int64_t own = 0;     // k t
  std::int64_t node = 0;    // T
  std::int64_t sorted = 0;  // T, or 0 when nothing moves
  RowBytes row;
};

RowBytes row_bytes_of(const HeadSplit& split, const ValueShape& value);
Sizes sizes_of(const Block& block, const Heads& heads, const ValueShape& value);

// Of a block whose rows travel by all-to-all.
StageBytes collective_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward);
// By peer copies.
StageBytes peer_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward);

// Of a block in a recomputed pass, some of whose rows are saved. `whole`: the block uncut.
StageBytes saved_bytes(const Parts& parts,
                       const Block& whole,
                       const Heads& heads,
                       const ValueShape& value,
                       Stage stage,
                       bool backward);
// The most of backward's, whatever is saved.
std::int64_t saved_bound(const Sizes& whole);

}  // namespace nsp
