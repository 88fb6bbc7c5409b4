// Ulysses (arXiv 2309.14509) over one node. Letters in comments: k ranks in the node, t rows of
// this rank, T rows of the node, h query and g KV heads a rank, D head_dim.
//
//   rows (t, H, D) -- HeadExchange --> (T, h+2g, D) by sequence: q | k | v, attention, and the same
//        way back
//
// Unequal rows and heads travel in one exchange because a row carries q, k and v of one token.
// Copied KV heads are packed from, and summed into, the layer's own layout.
#include <array>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/head_exchange.h"
#include "nsp/exec/rank_heads.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

std::unique_ptr<HeadExchange> make_exchange(const Block& block,
                                            const HeadSplit& heads,
                                            Communicator& communicator) {
  return block.transport == Transport::kPeerCopy
             ? make_peer_exchange(block, heads, *communicator.peers)
             : make_collective_exchange(block, heads, communicator);
}

class Ulysses final : public LevelBackend {
 public:
  Ulysses(Block block, const HeadSplit& heads, Communicator& communicator, AttentionKernel& kernel)
      : LevelBackend(std::move(block)),
        heads_(heads),
        exchange_(make_exchange(this->block(), heads, communicator)),
        kernel_(kernel),
        sequences_(this->block().lengths) {}

  bool keeps_rows() const override { return false; }

  void prologue(ForwardState& state) const override {
    const std::array<at::Tensor, 3> parts = {
        ranks().query(state.q), ranks().kv(state.k), ranks().kv(state.v)};
    state.pending = exchange_->to_sequences(parts, "forward prologue");
  }

  void compute(ForwardState& state) const override {
    Saved& saved = state.saved;
    saved.qkv = state.pending->wait();
    saved.out =
        at::empty({saved.qkv.size(0), heads_.query, saved.qkv.size(2)}, saved.qkv.options());
    saved.lse = kernel_.forward(inputs(state), saved.out);
  }

  void epilogue(ForwardState& state) const override {
    const std::array<at::Tensor, 1> out = {ranks().query(state.out)};
    state.pending = exchange_->to_rows(state.saved.out, out, "forward epilogue");
  }

  void finish(ForwardState& state) const override {
    state.pending->wait();
    state.pending.reset();
  }

  void prologue(BackwardState& state) const override {
    const std::array<at::Tensor, 1> parts = {ranks().query(state.dout)};
    state.pending = exchange_->to_sequences(parts, "backward prologue");
  }

  void compute(BackwardState& state) const override {
    const Saved& saved = state.saved;
    const at::Tensor dout = state.pending->wait();
    state.computed = at::empty(saved.qkv.sizes(), saved.qkv.options());
    const AttentionGradients gradients{.dq = query_part(state.computed),
                                       .dk = kv_part(state.computed, 0),
                                       .dv = kv_part(state.computed, 1)};
    kernel_.backward(inputs(state), saved.out, saved.lse, dout, gradients);
  }

  void epilogue(BackwardState& state) const override {
    std::vector<at::Tensor> targets = {ranks().query(state.dq)};
    if (heads_.copies == 1) {
      targets.insert(targets.end(), {ranks().kv(state.dk), ranks().kv(state.dv)});
    }
    state.pending = exchange_->to_rows(state.computed, targets, "backward epilogue");
    state.computed.reset();
  }

  // The gradient of a KV head is the sum over its copies (in float32 at least).
  void finish(BackwardState& state) const override {
    const at::Tensor kv = state.pending->wait();
    state.pending.reset();
    if (kv.defined()) {
      at::sum_out(state.dk, ranks().copies(part(kv, 1, 0, heads_.kv)), {2}, false);
      at::sum_out(state.dv, ranks().copies(part(kv, 1, heads_.kv, heads_.kv)), {2}, false);
    }
  }

 private:
  RankHeads ranks() const { return RankHeads(block().tokens, block().degree, heads_); }

  // The q, k and v columns of packed rows: (rows, h+2g, D).
  at::Tensor query_part(const at::Tensor& rows) const { return part(rows, 1, 0, heads_.query); }
  at::Tensor kv_part(const at::Tensor& rows, std::int64_t index) const {
    return part(rows, 1, heads_.query + index * heads_.kv, heads_.kv);
  }

  template <class State>
  AttentionInputs inputs(const State& state) const {
    const Saved& saved = state.saved;
    return {.q = query_part(saved.qkv),
            .k = kv_part(saved.qkv, 0),
            .v = kv_part(saved.qkv, 1),
            .sequences = &sequences_,
            .scale = state.scale,
            .window = state.window};
  }

  HeadSplit heads_;
  std::unique_ptr<HeadExchange> exchange_;
  AttentionKernel& kernel_;
  Ragged sequences_;
};

}  // namespace

std::unique_ptr<LevelBackend> make_ulysses(Block block,
                                           const HeadSplit& heads,
                                           Communicator& communicator,
                                           AttentionKernel& kernel) {
  return std::make_unique<Ulysses>(std::move(block), heads, communicator, kernel);
}

}  // namespace nsp
