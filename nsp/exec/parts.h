// A block cut by what its placements keep for the recomputed forward pass (marks, nsp/plan/plan.h).
// A rank's rows of a block are ordered by mark, so each part is one range of its rows, of its
// node's sequences and of its node's rows by sequence.
#pragma once

#include <cstdint>

#include "nsp/exec/block.h"
#include "nsp/plan/plan.h"

namespace nsp {

struct Parts {
  Block save_qkv;  // none of a leaf: its q, k and v are the layer's own
  Block save;      // at its end those that are offloaded: all but the stash treats them alike
  Block rest;      // recomputed; holds the dummy token
  std::int64_t offloaded_rows = 0;  // of this rank
  // Of the level's whole wave, over all ranks and nodes: they decide which exchanges every rank
  // issues.
  bool any_saved = false;
  bool any_rest = false;

  // Of this rank: those whose output is kept, and those of them whose output stays on the device.
  std::int64_t saved_rows() const { return save_qkv.tokens + save.tokens; }
  std::int64_t stashed_rows() const { return saved_rows() - offloaded_rows; }
};

std::int64_t node_rows(const Block& block);

// `before`: sequences of the node that lie in front of the block (leaves may be two blocks).
// Everything is `rest` for a backend that keeps nothing (all but local and ulysses).
Parts cut_by_marks(const Block& block,
                   Backend backend,
                   const Round& round,
                   std::int32_t rank,
                   std::int64_t before = 0);

}  // namespace nsp
