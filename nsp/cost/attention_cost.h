// The attention law of one pass on integers: picoseconds inside, nanoseconds outside.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/profile.h"

namespace nsp {

// What a launch does for one sequence and head, in rows and blocks of 128 tokens.
struct Blocks {
  std::int64_t blocks = 0;
  std::int64_t rows = 0;
  std::int64_t entries = 0;  // of the launch's batch

  Blocks& operator+=(const Blocks& other);
};

// Causal attention of `tokens` to themselves, and attention of `tokens` to `kv_tokens` without a
// mask (its rows: half of both sides, as a square has them).
Blocks causal_blocks(std::int64_t tokens);
Blocks full_blocks(std::int64_t tokens, std::int64_t kv_tokens);

class AttentionCost {
 public:
  explicit AttentionCost(const AttentionLaw& law);

  // Nanoseconds of one sequence's work with `heads` query heads over `kv_heads` KV heads on a rank.
  std::int64_t work(std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads) const;
  // The same of other shapes; the block's seconds are those of sequences of `kv_tokens`.
  std::int64_t work(const Blocks& blocks,
                    std::int64_t kv_tokens,
                    std::int64_t heads,
                    std::int64_t kv_heads) const;
  // Nanoseconds of the critical path when this sequence is the longest of a launch.
  std::int64_t path(std::int64_t tokens, bool grouped) const;
  // Nanoseconds of a launch beside the law.
  std::int64_t launch() const { return launch_; }

 private:
  struct Point {
    std::int64_t tokens = 0;
    std::int64_t picoseconds = 0;
  };

  std::int64_t block(std::int64_t tokens) const;

  std::vector<Point> block_;
  std::int64_t row_;
  std::int64_t entry_[2];  // index: grouped
  std::int64_t path_fixed_[2];
  std::int64_t path_row_[2];
  std::int64_t launch_;
};

}  // namespace nsp
