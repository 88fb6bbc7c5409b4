#include "nsp/exec/rank_heads.h"

#include <algorithm>

#include "nsp/exec/view.h"

namespace nsp {

// `rank`: elements from one rank's part to the next; with shared KV heads, from one KV head's to
// the next, and `copy` from one of its ranks to the next.
at::Tensor RankHeads::cut(const at::Tensor& x,
                          std::int64_t heads,
                          std::int64_t rank,
                          std::int64_t row,
                          std::int64_t copy) const {
  const std::int64_t d = x.size(-1);
  if (shared()) {
    return strided(x,
                   {degree_ / heads_.copies, heads_.copies, tokens_, heads, d},
                   {rank, copy, row, x.stride(-2), x.stride(-1)});
  }
  return strided(x, {degree_, tokens_, heads, d}, {rank, row, x.stride(-2), x.stride(-1)});
}

at::Tensor RankHeads::query(const at::Tensor& rows) const {
  const std::int64_t rank = heads_.query * rows.stride(1);
  return cut(rows, heads_.query, shared() ? heads_.copies * rank : rank, rows.stride(0), rank);
}

at::Tensor RankHeads::kv(const at::Tensor& rows) const {
  if (heads_.copies == 1 || shared()) {
    return cut(rows, heads_.kv, heads_.kv * rows.stride(1), rows.stride(0), 0);
  }
  const at::Tensor repeated = rows.unsqueeze(2)
                                  .expand({tokens_, rows.size(1), heads_.copies, rows.size(2)})
                                  .reshape({tokens_, degree_ * heads_.kv, rows.size(2)});
  return cut(repeated, heads_.kv, heads_.kv * repeated.stride(1), repeated.stride(0), 0);
}

at::Tensor RankHeads::packed(const at::Tensor& rows) const {
  const std::int64_t rank = tokens_ * rows.stride(0);
  return cut(rows, rows.size(1), shared() ? heads_.copies * rank : rank, rows.stride(0), rank);
}

at::Tensor RankHeads::packed(const at::Tensor& heads, const Columns& columns) const {
  const std::int64_t d = heads.size(-1), rank = columns.rank * d;
  return cut(part(heads, 0, columns.first, heads.size(0) - columns.first),
             columns.heads,
             shared() ? heads_.copies * rank : rank,
             columns.row * d,
             rank);
}

at::Tensor RankHeads::copies(const at::Tensor& rows) const {
  const at::Tensor ranks = packed(rows);
  const std::int64_t kv = degree_ * heads_.kv / heads_.copies, d = rows.size(2);
  return shared() ? strided(ranks,
                            {tokens_, kv, heads_.copies, d},
                            {ranks.stride(2), ranks.stride(0), ranks.stride(1), ranks.stride(4)})
                  : ranks.transpose(0, 1).reshape({tokens_, kv, heads_.copies, d});
}

// Where KV heads are shared, a view's first two dimensions are KV heads and their copies: a range
// is whole KV heads, or some copies of one.
std::vector<RankHeads::Range> RankHeads::ranges(std::int64_t begin, std::int64_t end) const {
  std::vector<Range> result;
  while (begin < end) {
    std::int64_t until = end;
    if (shared()) {
      const bool whole = begin % heads_.copies == 0 && end - begin >= heads_.copies;
      until = whole ? end / heads_.copies * heads_.copies
                    : std::min(end, (begin / heads_.copies + 1) * heads_.copies);
    }
    result.push_back({begin, until});
    begin = until;
  }
  return result;
}

at::Tensor RankHeads::members(const at::Tensor& view, const Range& range) const {
  const std::int64_t count = range.end - range.begin;
  if (!shared()) {
    return part(view, 0, range.begin, count);
  }
  const std::int64_t copies = heads_.copies;
  if (count >= copies) {
    return part(view, 0, range.begin / copies, count / copies);
  }
  return part(part(view, 0, range.begin / copies, 1), 1, range.begin % copies, count);
}

at::Tensor RankHeads::packed(const at::Tensor& rows, const Range& range) const {
  const std::int64_t count = range.end - range.begin;
  const std::int64_t row = rows.stride(0);
  const std::int64_t heads = rows.size(1), d = rows.size(2);
  if (!shared()) {
    return strided(rows, {count, tokens_, heads, d}, {tokens_ * row, row, d, 1});
  }
  const std::int64_t copies = std::min(count, heads_.copies);
  return strided(rows,
                 {count / copies, copies, tokens_, heads, d},
                 {copies * tokens_ * row, tokens_ * row, row, d, 1});
}

at::Tensor RankHeads::member(const at::Tensor& view, std::int64_t rank) const {
  const auto leading = static_cast<std::size_t>(view.dim() - 3);
  const std::int64_t offset =
      shared() ? rank / heads_.copies * view.stride(0) + rank % heads_.copies * view.stride(1)
               : rank * view.stride(0);
  return strided(view, view.sizes().slice(leading), view.strides().slice(leading), offset);
}

}  // namespace nsp
