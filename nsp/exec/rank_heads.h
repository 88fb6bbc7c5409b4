// The rows of one rank cut by the ranks of a node that work on their heads: views, nothing moves.
//
// Letters: k ranks in the node, t rows, h query and g KV heads a rank, D head_dim. A view has the
// dimensions (ranks, t, heads a rank, D). Where one KV head is copied to several ranks, `ranks` is
// (KV heads, copies), so that copying takes no memory. Rows (t, heads, D) may have any strides.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/exec/heads.h"

namespace nsp {

class RankHeads {
 public:
  RankHeads(std::int64_t tokens, std::int64_t degree, const HeadSplit& heads)
      : tokens_(tokens), degree_(degree), heads_(heads) {}

  // (t, k * h, D) as (ranks, t, h, D).
  at::Tensor query(const at::Tensor& rows) const;
  // (t, KV, D) as (ranks, t, g, D), copies included. KV heads that are copied in runs which cross
  // ranks (12 query heads, 3 KV heads, degree 2) are copied in memory.
  at::Tensor kv(const at::Tensor& rows) const;
  // (k * t, heads, D), the rows of each rank in turn, as (ranks, t, heads, D).
  at::Tensor packed(const at::Tensor& rows) const;
  // (k * t, g, D) in the order of `packed` as (t, KV, copies, D).
  at::Tensor copies(const at::Tensor& rows) const;

  // Members [begin, end) cut into ranges that are one view each.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::vector<Range> ranges(std::int64_t begin, std::int64_t end) const;
  // A range of a view's ranks, as a view.
  at::Tensor members(const at::Tensor& view, const Range& range) const;
  // (n * t, heads, D), the rows of each rank of a range in turn, as members() of their views.
  at::Tensor packed(const at::Tensor& rows, const Range& range) const;
  // One rank's part of a view: (t, heads, D).
  at::Tensor member(const at::Tensor& view, std::int64_t rank) const;

 private:
  // Every rank reads one KV head, which it shares with others.
  bool shared() const { return heads_.copies > 1 && heads_.kv == 1; }
  // A view (ranks, t, heads, D): `head`, `row` elements from one head or row to the next.
  at::Tensor cut(const at::Tensor& x,
                 std::int64_t heads,
                 std::int64_t rank,
                 std::int64_t row,
                 std::int64_t copy) const;

  std::int64_t tokens_;
  std::int64_t degree_;
  HeadSplit heads_;
};

}  // namespace nsp
