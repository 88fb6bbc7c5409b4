// The ranks of a ring: plain numbers.
#pragma once

#include <cstdint>

#include "nsp/exec/block.h"
#include "nsp/exec/heads.h"

namespace nsp {

// Indices 0 ... size - 1 are the ranks first_rank, first_rank + stride, ... of one node. Inside usp
// some neighbours of a rank may hold the same rows of the same KV heads ("copies", consecutive
// ranks): then each of them sends and receives a share of the rows, and they pass their shares on
// to each other, so that between hosts every row travels once.
struct Ring {
  std::int32_t size = 2;
  std::int32_t index = 0;  // this rank's
  std::int32_t first_rank = 0;
  std::int32_t stride = 1;
  std::int32_t first_copy = 0;  // rank
  std::int32_t copies = 1;
  std::int32_t copy = 0;   // this rank's
  std::int32_t level = 2;  // degree of the node: names the exchanges

  std::int32_t rank_of(std::int32_t ring_index) const { return first_rank + ring_index * stride; }
  // Of `rows` rows, those of one copy.
  std::int64_t share_begin(std::int64_t rows, std::int32_t of_copy) const {
    return rows * of_copy / copies;
  }
  std::int64_t share(std::int64_t rows, std::int32_t of_copy) const {
    return share_begin(rows, of_copy + 1) - share_begin(rows, of_copy);
  }
};

// That of a block of gather, ring or usp. `heads`: split over usp's inner ranks, else all. Copies
// of KV heads that cross ranks in runs (12 query heads, 3 KV heads, 2 inner ranks) are not shared.
Ring ring_of(const Block& block, const HeadSplit& heads);

}  // namespace nsp
