// Which heads the ranks of an ulysses node work on.
#pragma once

#include <cstdint>

namespace nsp {

struct Heads {
  std::int64_t query = 1;
  std::int64_t kv = 1;  // divides query
};

// Rank i of a node works on query heads [i * query, (i + 1) * query) and on the KV heads that these
// read. When each KV head is repeated `copies` times, rank i needs the repeated heads
// [i * kv, (i + 1) * kv), so the ranks' shares are equal in size and the gradient of a KV head is
// the sum over its copies.
//
//   heads 8, kv 2, degree 4: query 2, kv 1, copies 2     KV heads 0 0 1 1
//   heads 12, kv 3, degree 2: query 6, kv 3, copies 2    KV heads 0 0 1 | 1 2 2
struct HeadSplit {
  std::int64_t query = 1;
  std::int64_t kv = 1;
  std::int64_t copies = 1;

  bool operator==(const HeadSplit&) const = default;
};

// Throws BadInput unless both are positive and kv divides query.
void check_heads(const Heads& heads);

// Throws BadInput, naming the allowed degrees, unless the degree divides heads.query.
HeadSplit split_heads(const Heads& heads, std::int32_t degree);

}  // namespace nsp
