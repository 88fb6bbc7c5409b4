#include "nsp/exec/zigzag_launch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "nsp/exec/sums.h"
#include "nsp/exec/view.h"

namespace nsp {

using at::Tensor;

ZigzagLaunch::ZigzagLaunch(const ZigzagChunks& chunks, std::int64_t tokens, std::int64_t received)
    : queries(chunks.queries, tokens),
      keys(chunks.keys, received),
      query_lengths(chunks.query_lengths),
      key_lengths(chunks.key_lengths) {}

AttentionInputs ZigzagLaunch::inputs(const Tensor& q,
                                     const Tensor& kv,
                                     double scale,
                                     Mask mask) const {
  return {.q = q,
          .k = keys_of(kv),
          .v = values_of(kv),
          .sequences = &query_lengths,
          .scale = scale,
          .keys = &key_lengths,
          .mask = mask};
}

Tensor pack_kv(const Tensor& k, const Tensor& v) {
  return at::cat({k, v}, 1);
}
Tensor keys_of(const Tensor& kv) {
  return part(kv, 1, 0, kv.size(1) / 2);
}
Tensor values_of(const Tensor& kv) {
  return part(kv, 1, kv.size(1) / 2, kv.size(1) / 2);
}

void attend_chunks(AttentionKernel& kernel,
                   const ZigzagLaunch& launch,
                   const ForwardState& state,
                   const Tensor& kv,
                   const Tensor& out,
                   Tensor& lse) {
  if (launch.empty()) {
    return;
  }
  Tensor part = at::empty({launch.queries.count(), out.size(1), out.size(2)}, state.q.options());
  Tensor part_lse;
  {
    const Tensor q = launch.queries.select(state.q);
    const Tensor keys = launch.keys.select(kv);
    part_lse = kernel.forward(launch.inputs(q, keys, state.scale, Mask::kFull), part);
  }
  part = as_sum(part);
  const Tensor rows = launch.queries.select(out);
  Tensor rows_lse = launch.queries.select(lse);
  merge(rows, rows_lse, part, part_lse);
  launch.queries.put(rows, out);
  launch.queries.put(rows_lse, lse);
}

// The kernel writes where the layer's rows lie: it finds them strided as its operands.
Tensor own_gradients(AttentionKernel& kernel, const Ragged& lengths, const BackwardState& state) {
  if (lengths.count() > 0) {
    kernel.backward(
        {.q = state.q, .k = state.k, .v = state.v, .sequences = &lengths, .scale = state.scale},
        state.out,
        state.saved.lse,
        state.dout,
        {.dq = state.dq, .dk = state.dk, .dv = state.dv});
  }
  return pack_kv(state.dk, state.dv);
}

Tensor chunk_gradients(AttentionKernel& kernel,
                       const ZigzagLaunch& launch,
                       const BackwardState& state,
                       const Tensor& kv,
                       const Tensor& dq) {
  const auto selected = [&](const Tensor& rows) { return launch.queries.select(rows); };
  const Tensor keys = launch.keys.select(kv);
  Tensor dkv = at::empty(keys.sizes(), keys.options());
  if (launch.empty()) {
    return dkv;
  }
  const Tensor q = selected(state.q), out = selected(state.out), dout = selected(state.dout);
  const Tensor part = at::empty(q.sizes(), q.options());
  kernel.backward(launch.inputs(q, keys, state.scale, Mask::kFull),
                  out,
                  selected(state.saved.lse),
                  dout,
                  {.dq = part, .dk = keys_of(dkv), .dv = values_of(dkv)});
  launch.queries.add(as_sum(part), dq);
  return dkv;
}

void fill_empty_rows(const Block& block, std::int64_t kv_heads, BackwardState& state) {
  if (block.tokens == 0) {
    state.q = at::empty({0, state.dout.size(1), state.dout.size(2)}, state.dout.options());
    state.k = at::empty({0, kv_heads, state.dout.size(2)}, state.dout.options());
    state.v = state.k;
    state.out = state.q;
  }
}

}  // namespace nsp
