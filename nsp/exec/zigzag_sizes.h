// The steps of ring.cpp, gather.cpp and zigzag_launch.cpp on the sizes of their tensors: taken when
// one is made, dropped when it goes. For the formulas of zigzag_bytes.h alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "nsp/exec/buffer_bytes.h"
#include "nsp/exec/ring_ranks.h"

namespace nsp::sizes {

using StageList = std::array<StageBytes, 4>;  // by Stage

class Held {
 public:
  // Made, and never mind what else: the most at once counts.
  std::int64_t take(std::int64_t bytes) {
    held_ += bytes;
    most_ = std::max(most_, held_);
    return bytes;
  }
  void drop(std::int64_t bytes) { held_ -= bytes; }
  StageBytes end_stage() { return {std::exchange(most_, held_), held_}; }

 private:
  std::int64_t held_ = 0;
  std::int64_t most_ = 0;
};

// Bytes of a row: of keys and values, of queries, of log-sum-exps; s: as sums.
struct Row {
  std::int64_t kv, kv_s, q, q_s, lse;
  bool cast;  // sums have a type of their own

  Row(std::int64_t heads, std::int64_t kv_heads, const ValueShape& value) {
    const std::int64_t sum = value.bytes == 8 ? 8 : 4;
    kv = 2 * kv_heads * value.head_dim * value.bytes;
    kv_s = 2 * kv_heads * value.head_dim * sum;
    q = heads * value.head_dim * value.bytes;
    q_s = heads * value.head_dim * sum;
    lse = heads * sum;
    cast = sum != value.bytes;
  }
};

// Rows of a selection; it copies nothing when it is all of them.
struct Selected {
  std::int64_t rows = 0;
  bool all = false;

  Selected(const std::vector<std::int64_t>& of, std::int64_t total)
      : rows(std::ssize(of)),
        all(rows == total && std::ranges::is_sorted(of) &&
            std::ranges::adjacent_find(of) == of.end()) {}
  std::int64_t copied() const { return all ? 0 : rows; }
};

struct Launch {
  Selected queries;
  Selected keys;

  bool empty() const { return queries.rows == 0; }
};

// An exchange: this copy's share sent (kept in the layer's own rows where it is all of them) and
// received, whole rows, and what returns.
struct Exchange {
  Selected sent;
  std::int64_t share = 0;
  std::int64_t received = 0;
};

// Of `rows` rows, those of this rank's copy.
std::int64_t own_share(std::int64_t rows, const Ring& ring);

// RingExchange::collect.
void collect(const Exchange& exchange, const Ring& ring, const Row& row, Held& held);

// RingExchange::start_back, from gradients of all received rows. Returns the bytes on their way.
std::int64_t start_back(const Exchange& exchange, const Ring& ring, const Row& row, Held& held);

// Adding rows that came back to sums.
void take_back(std::int64_t rows, const Row& row, Held& held);

// attend_chunks.
void attend_chunks(const Launch& launch, const Row& row, Held& held);

// chunk_gradients: leaves the gradients of the launch's keys.
void chunk_gradients(const Launch& launch, const Row& row, Held& held);

// own_gradients and their sums, which it leaves. t: rows of this rank.
void own_gradients(std::int64_t t, const Row& row, Held& held);

// A whole pass of ring or gather over one block, stage by stage.
StageList ring_bytes(const ZigzagPieces& pieces, const Ring& ring, const Row& row, bool backward);
StageList gather_bytes(const ZigzagPieces& pieces, const Ring& ring, const Row& row, bool backward);

}  // namespace nsp::sizes
