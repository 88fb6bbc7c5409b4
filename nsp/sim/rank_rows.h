// How many rows of each kind the ranks hold in a round: what memory is counted by.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

struct RankRows {
  std::int64_t tokens = 0;           // all rows; 1 (the dummy token) on a rank that owns none
  std::int64_t read = 0;             // as many where leaves make backward read q, k, v, else 0
  std::int64_t exchanged = 0;        // of levels above the leaves
  std::int64_t exchanged_heads = 0;  // their rows times the KV heads that head layout has of each
  std::int64_t launched = 0;         // of the level's wave that has most
  std::int64_t saved = 0;            // of placements whose marks keep the output on the device
  std::int64_t saved_exchanged = 0;  // of these and of offloaded ones, what lies above the leaves
  std::int64_t saved_heads = 0;      // these times the KV heads
  std::int64_t saved_qkv = 0;        // of placements that keep q, k and v too
  std::int64_t offloaded = 0;        // of placements whose output is on the host

  bool operator==(const RankRows&) const = default;
};

// By rank. A gathered sequence counts its whole node's keys and values.
std::vector<RankRows> rank_rows(const Round& round, std::int32_t world, std::int64_t kv_heads);

}  // namespace nsp
