// KV gather over zigzag pieces. Letters as in zigzag_launch.h; r indices, N received rows.
//
// Forward: K and V of the node's rows that are seen here (N, 2g, D) are put in order, once for the
// lower and once for the upper pieces, for one causal launch of two chunks a sequence, aligned at
// the end of each chunk's keys.
//
// Backward: K and V come again (they are not kept). Own pieces, causal, and the keys before them,
// without a mask, are two launches: a mask that is aligned at the end is not skipped in backward.
// The second's dk and dv (one row for each chunk that sees a key) are added up in (N, 2g, D) in
// float32 and return to the rows' owners, where all are added up in float32.
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/ring_exchange.h"
#include "nsp/exec/sums.h"
#include "nsp/exec/view.h"
#include "nsp/exec/zigzag_launch.h"

namespace nsp {
namespace {

using at::Tensor;
using Counts = std::vector<std::int64_t>;

// What this rank sends to (sent) or receives from each index.
std::vector<Counts> rows_by_index(const ZigzagPieces& pieces, const Ring& ring, bool sent) {
  std::vector<Counts> rows;
  for (std::int32_t other = 0; other < ring.size; ++other) {
    rows.push_back(sent ? sent_rows(pieces, ring.index, other)
                        : sent_rows(pieces, other, ring.index));
  }
  return rows;
}

Counts sizes_of(const std::vector<Counts>& rows) {
  Counts sizes;
  for (const Counts& of : rows) {
    sizes.push_back(static_cast<std::int64_t>(of.size()));
  }
  return sizes;
}

// Their keys as rows of what is collected.
ZigzagChunks collected(ZigzagChunks chunks, const Counts& order) {
  for (std::int64_t& key : chunks.keys) {
    key = order[static_cast<std::size_t>(key)];
  }
  return chunks;
}

class Gather final : public LevelBackend {
 public:
  Gather(Block block,
         const Ring& ring,
         std::int64_t kv_heads,
         Communicator& communicator,
         AttentionKernel& kernel)
      : LevelBackend(std::move(block)),
        kernel_(kernel),
        kv_heads_(kv_heads),
        exchange_(ring,
                  communicator,
                  sizes_of(rows_by_index(pieces(), ring, true)),
                  sizes_of(rows_by_index(pieces(), ring, false))),
        sent_(exchange_.share_of(rows_by_index(pieces(), ring, true)), tokens(ring)),
        own_(gather_chunks(pieces(), ring.index, true).query_lengths),
        all_(collected(gather_chunks(pieces(), ring.index, true), exchange_.order()),
             tokens(ring),
             exchange_.received_rows()),
        before_(collected(gather_chunks(pieces(), ring.index, false), exchange_.order()),
                tokens(ring),
                exchange_.received_rows()) {
    for (const Counts& rows : rows_by_index(pieces(), ring, true)) {
      returned_.push_back(std::make_unique<RowSelection>(exchange_.share_of({rows}), tokens(ring)));
    }
  }

  bool keeps_rows() const override { return block().tokens > 0; }

  void prologue(ForwardState& state) const override {
    state.pending = send(state, "forward prologue");
  }

  void compute(ForwardState& state) const override {
    const Tensor nothing = at::empty({0}, state.q.options());
    const Tensor received = exchange_.collect(std::move(state.pending), "forward compute");
    const Tensor kv = all_.keys.select(received);
    state.saved = {
        .qkv = nothing,
        .out = nothing,
        .lse = kernel_.forward(all_.inputs(state.q, kv, state.scale, Mask::kCausal), state.out)};
  }

  void epilogue(ForwardState&) const override {}
  void finish(ForwardState&) const override {}

  void prologue(BackwardState& state) const override {
    fill_empty_rows(block(), kv_heads_, state);
    state.pending = send(state, "backward prologue");
  }

  void compute(BackwardState& state) const override {
    state.computed = as_sum(own_gradients(kernel_, own_, state));
    const Tensor dq = as_sum(state.dq);
    const Tensor dkv = [&] {
      const Tensor kv = exchange_.collect(std::move(state.pending), "backward compute");
      return chunk_gradients(kernel_, before_, state, kv, dq);
    }();
    if (!dq.is_same(state.dq)) {
      state.dq.copy_(dq);
    }
    const Tensor sums = at::zeros({exchange_.received_rows(), dkv.size(1), dkv.size(2)},
                                  dkv.options().dtype(sum_type(dkv.scalar_type())));
    before_.keys.add(as_sum(dkv), sums);
    state.kv = sums.to(dkv.scalar_type());
  }

  void epilogue(BackwardState& state) const override {
    state.pending = exchange_.start_back(std::move(state.kv), "backward epilogue");
  }

  void finish(BackwardState& state) const override {
    const Tensor rows = exchange_.collect_back(std::move(state.pending));
    std::int64_t begin = 0;
    for (const auto& from : returned_) {
      from->add(as_sum(part(rows, 0, begin, from->count())), state.computed);
      begin += from->count();
    }
    state.dk.copy_(keys_of(state.computed));
    state.dv.copy_(values_of(state.computed));
    state.computed.reset();
  }

 private:
  const ZigzagPieces& pieces() const { return block().pieces; }
  std::int64_t tokens(const Ring& ring) const { return zigzag_tokens(pieces(), ring.index); }

  template <class State>
  std::unique_ptr<Pending> send(const State& state, std::string_view phase) const {
    const Tensor kv = pack_kv(state.k, state.v);
    return exchange_.start(sent_.select(kv), phase);
  }

  AttentionKernel& kernel_;
  std::int64_t kv_heads_;
  RingExchange exchange_;
  RowSelection sent_;  // for each index in turn
  Ragged own_;         // piece by piece
  ZigzagLaunch all_;
  ZigzagLaunch before_;
  std::vector<std::unique_ptr<RowSelection>> returned_;  // own rows to which each index returns
};

}  // namespace

std::unique_ptr<LevelBackend> make_gather(Block block,
                                          const Ring& ring,
                                          std::int64_t kv_heads,
                                          Communicator& communicator,
                                          AttentionKernel& kernel) {
  return std::make_unique<Gather>(std::move(block), ring, kv_heads, communicator, kernel);
}

}  // namespace nsp
