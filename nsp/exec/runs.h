// Rows of a node as runs: what a source holds of a sequence, and where it lies among the node's
// rows by sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/exec/block.h"

namespace nsp {

struct Run {
  std::int32_t source = 0;  // member of the node
  std::int64_t row = 0;     // first of its rows there
  std::int64_t to = 0;      // first row by sequence
  std::int64_t rows = 0;

  bool operator==(const Run&) const = default;
};

// All rows of the node in the order of sequences, in as few runs as possible.
std::vector<Run> runs_of(const Block& block);

}  // namespace nsp
