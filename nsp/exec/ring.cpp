// Ring attention (arXiv 2310.01889) over zigzag pieces. Letters as in zigzag_launch.h; r indices.
//
//   hop j = 1 ... r - 1: own K and V go to index i + j, those of index i - j arrive
//
//   forward   own rows, causal | rows of hop 1 | rows of hop 2 | ...   each merged into out and lse
//   backward  the same launches; dk and dv of a hop's rows go back to their owner during the next
//
// Every index sends its own rows to each other one, instead of passing on what it received: only
// pieces that are seen there travel (three quarters), no rank holds more than two hops' rows, and
// gradients return once, in the type of the rows, to be added up in float32. The next hop's rows
// are on their way before a launch starts.
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/ring_exchange.h"
#include "nsp/exec/sums.h"
#include "nsp/exec/zigzag_launch.h"

namespace nsp {
namespace {

using at::Tensor;

// One hop: what leaves, what arrives, and what own queries see of it.
struct Hop {
  Hop(const ZigzagPieces& pieces, const Ring& ring, Communicator& communicator, std::int32_t by)
      : Hop(pieces,
            ring,
            communicator,
            /*to=*/(ring.index + by) % ring.size,
            /*from=*/(ring.index + ring.size - by) % ring.size) {}

  Tensor returned(const Tensor& dkv) const {
    if (launch.keys.all()) {
      return dkv;
    }
    Tensor rows = at::zeros({exchange.received_rows(), dkv.size(1), dkv.size(2)}, dkv.options());
    launch.keys.put(dkv, rows);
    return rows;
  }

  RingExchange exchange;
  RowSelection sent;
  ZigzagLaunch launch;

 private:
  using Counts = std::vector<std::int64_t>;

  Hop(const ZigzagPieces& pieces,
      const Ring& ring,
      Communicator& communicator,
      std::int32_t to,
      std::int32_t from)
      : exchange(ring,
                 communicator,
                 only(ring, to, sent_rows(pieces, ring.index, to)),
                 only(ring, from, sent_rows(pieces, from, ring.index))),
        sent(exchange.share_of({sent_rows(pieces, ring.index, to)}),
             zigzag_tokens(pieces, ring.index)),
        launch(ring_chunks(pieces, ring.index, from),
               zigzag_tokens(pieces, ring.index),
               exchange.received_rows()) {}

  static Counts only(const Ring& ring, std::int32_t index, const Counts& rows) {
    Counts counts(static_cast<std::size_t>(ring.size), 0);
    counts[static_cast<std::size_t>(index)] = static_cast<std::int64_t>(rows.size());
    return counts;
  }
};

class RingBackend final : public LevelBackend {
 public:
  RingBackend(Block block,
              const Ring& ring,
              std::int64_t kv_heads,
              Communicator& communicator,
              AttentionKernel& kernel)
      : LevelBackend(std::move(block)),
        kernel_(kernel),
        kv_heads_(kv_heads),
        own_(own_lengths(this->block().pieces, ring.index)) {
    for (std::int32_t by = 1; by < ring.size; ++by) {
      hops_.push_back(std::make_unique<Hop>(this->block().pieces, ring, communicator, by));
    }
  }

  bool keeps_rows() const override { return block().tokens > 0; }

  void prologue(ForwardState& state) const override {
    state.kv = pack_kv(state.k, state.v);
    send(0, state, "forward prologue");
  }

  void compute(ForwardState& state) const override {
    const Tensor nothing = at::empty({0}, state.q.options());
    Tensor lse = kernel_
                     .forward({.q = state.q,
                               .k = state.k,
                               .v = state.v,
                               .sequences = &own_,
                               .scale = state.scale},
                              state.out)
                     .contiguous();
    const Tensor out = as_sum(state.out);
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      const Tensor kv = receive(i, state, "forward compute");
      attend_chunks(kernel_, hops_[i]->launch, state, kv, out, lse);
    }
    if (!out.is_same(state.out)) {
      state.out.copy_(out);
    }
    state.saved = {.qkv = nothing, .out = nothing, .lse = std::move(lse)};
  }

  void epilogue(ForwardState&) const override {}
  void finish(ForwardState&) const override {}

  void prologue(BackwardState& state) const override {
    fill_empty_rows(block(), kv_heads_, state);
    state.kv = pack_kv(state.k, state.v);
    send(0, state, "backward prologue");
  }

  void compute(BackwardState& state) const override {
    state.computed = as_sum(own_gradients(kernel_, own_, state));
    const Tensor dq = as_sum(state.dq);
    std::unique_ptr<Pending> back;
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      const Hop& hop = *hops_[i];
      const Tensor kv = receive(i, state, "backward compute");
      Tensor dkv = hop.returned(chunk_gradients(kernel_, hop.launch, state, kv, dq));
      if (i > 0) {
        add_returned(i - 1, std::move(back), state.computed);
      }
      back = hop.exchange.start_back(std::move(dkv), "backward compute");
    }
    state.pending = std::move(back);
    if (!dq.is_same(state.dq)) {
      state.dq.copy_(dq);
    }
  }

  void epilogue(BackwardState&) const override {}

  void finish(BackwardState& state) const override {
    add_returned(hops_.size() - 1, std::move(state.pending), state.computed);
    state.dk.copy_(keys_of(state.computed));
    state.dv.copy_(values_of(state.computed));
    state.computed.reset();
  }

 private:
  template <class State>
  void send(std::size_t hop, State& state, std::string_view phase) const {
    state.pending = hops_[hop]->exchange.start(hops_[hop]->sent.select(state.kv), phase);
    if (hop + 1 == hops_.size()) {
      state.kv.reset();
    }
  }

  // The rows of a hop; those of the next one are then on their way.
  template <class State>
  Tensor receive(std::size_t hop, State& state, std::string_view phase) const {
    Tensor kv = hops_[hop]->exchange.collect(std::move(state.pending), phase);
    if (hop + 1 < hops_.size()) {
      send(hop + 1, state, phase);
    }
    return kv;
  }

  void add_returned(std::size_t hop, std::unique_ptr<Pending> back, const Tensor& dkv) const {
    const Tensor rows = hops_[hop]->exchange.collect_back(std::move(back));
    hops_[hop]->sent.add(as_sum(rows), dkv);
  }

  AttentionKernel& kernel_;
  std::int64_t kv_heads_;
  Ragged own_;
  std::vector<std::unique_ptr<Hop>> hops_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_ring(Block block,
                                        const Ring& ring,
                                        std::int64_t kv_heads,
                                        Communicator& communicator,
                                        AttentionKernel& kernel) {
  return std::make_unique<RingBackend>(std::move(block), ring, kv_heads, communicator, kernel);
}

}  // namespace nsp
