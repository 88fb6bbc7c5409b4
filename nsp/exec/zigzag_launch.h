// Attention launches over zigzag rows: what ring and gather do with one rank's queries.
//
// Letters: t rows of this rank, n of received keys, h query and g KV heads, D head_dim. Keys and
// values travel as one tensor (rows, 2g, D), keys first, and so do their gradients.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "nsp/attention/attention.h"
#include "nsp/exec/backend.h"
#include "nsp/exec/row_selection.h"
#include "nsp/exec/zigzag_rows.h"

namespace nsp {

// Chunks of queries with keys of their own, one launch. Device tensors are made once.
struct ZigzagLaunch {
  // `tokens` rows of this rank, `received` rows of keys.
  ZigzagLaunch(const ZigzagChunks& chunks, std::int64_t tokens, std::int64_t received);

  bool empty() const { return query_lengths.count() == 0; }
  AttentionInputs inputs(const at::Tensor& q, const at::Tensor& kv, double scale, Mask mask) const;

  RowSelection queries;
  RowSelection keys;
  Ragged query_lengths;
  Ragged key_lengths;
};

// (rows, 2g, D), contiguous.
at::Tensor pack_kv(const at::Tensor& k, const at::Tensor& v);
at::Tensor keys_of(const at::Tensor& kv);
at::Tensor values_of(const at::Tensor& kv);

// Own rows, `kv` those received. Takes what the launch's queries see of them into the sums `out`
// (t, h, D) and `lse` (t, h).
void attend_chunks(AttentionKernel& kernel,
                   const ZigzagLaunch& launch,
                   const ForwardState& state,
                   const at::Tensor& kv,
                   const at::Tensor& out,
                   at::Tensor& lse);

// The backward of own queries and own keys, causal: dq in state.dq, dk and dv in the result (and as
// a start in the state's).
at::Tensor own_gradients(AttentionKernel& kernel,
                         const Ragged& lengths,
                         const BackwardState& state);

// The backward of a launch without mask: adds to the sum `dq`, returns dk and dv of the launch's
// keys.
at::Tensor chunk_gradients(AttentionKernel& kernel,
                           const ZigzagLaunch& launch,
                           const BackwardState& state,
                           const at::Tensor& kv,
                           const at::Tensor& dq);

// A block of a rank without rows there is given none of the layer's: makes empty ones.
void fill_empty_rows(const Block& block, std::int64_t kv_heads, BackwardState& state);

}  // namespace nsp
