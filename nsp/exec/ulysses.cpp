// Ulysses (arXiv 2309.14509) over one node. Letters in comments: k ranks in the node, t rows of
// this rank, T rows of the node, h query and g KV heads a rank, D head_dim.
//
//   rows (t, H, D) -- pack --> (k, t, h+2g, D) -- exchange --> (T, h+2g, D) by source
//        -- to_sequences --> (T, h+2g, D) by sequence: q | k | v, attention, and the same way back
//
// Unequal rows and heads travel in one exchange because a row carries q, k and v of one token.
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/row_permutation.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// Counts over the whole world; ranks outside the node have none.
Counts over_world(const Block& block, const Counts& node_counts, std::int32_t world) {
  Counts counts(static_cast<std::size_t>(world), 0);
  std::copy(node_counts.begin(), node_counts.end(), counts.begin() + block.first_rank);
  return counts;
}

// (t, KV, D) as (t, KV, copies, D), each KV head repeated without copying.
at::Tensor repeated(const at::Tensor& x, std::int64_t copies) {
  return x.unsqueeze(2).expand({x.size(0), x.size(1), copies, x.size(2)});
}

class Ulysses final : public LevelBackend {
 public:
  Ulysses(Block block, const HeadSplit& heads, Communicator& communicator, AttentionKernel& kernel)
      : LevelBackend(std::move(block)),
        heads_(heads),
        communicator_(communicator),
        kernel_(kernel),
        sequences_(this->block().lengths),
        to_sequences_(this->block().to_sequences),
        to_sources_(inverse_permutation(this->block().to_sequences)),
        own_counts_(over_world(this->block(), Counts(degree(), tokens()), communicator.size())),
        node_counts_(over_world(this->block(), this->block().rank_tokens, communicator.size())) {}

  bool keeps_rows() const override { return false; }

  void prologue(ForwardState& state) const override {
    const at::Tensor rows = packed(heads_.query + 2 * heads_.kv, state.q);
    query_part(rows).copy_(by_rank(state.q, heads_.query));
    kv_part(rows, 0).copy_(by_rank(repeated(state.k, heads_.copies), heads_.kv));
    kv_part(rows, 1).copy_(by_rank(repeated(state.v, heads_.copies), heads_.kv));
    state.pending = to_heads(rows, "forward prologue");
  }

  void compute(ForwardState& state) const override {
    Saved& saved = state.saved;
    saved.qkv = to_sequences_.apply(state.pending->wait());
    saved.out =
        at::empty({saved.qkv.size(0), heads_.query, saved.qkv.size(2)}, saved.qkv.options());
    saved.lse = kernel_.forward(inputs(state), saved.out);
  }

  void epilogue(ForwardState& state) const override {
    state.pending = to_rows(state.saved.out, "forward epilogue");
  }

  void finish(ForwardState& state) const override {
    write_query(state.out, unpacked(state.pending->wait()));
    state.pending.reset();
  }

  void prologue(BackwardState& state) const override {
    const at::Tensor rows = packed(heads_.query, state.dout);
    rows.copy_(by_rank(state.dout, heads_.query));
    state.pending = to_heads(rows, "backward prologue");
  }

  void compute(BackwardState& state) const override {
    const Saved& saved = state.saved;
    const at::Tensor dout = to_sequences_.apply(state.pending->wait());
    state.computed = at::empty(saved.qkv.sizes(), saved.qkv.options());
    const AttentionGradients gradients{.dq = query_part(state.computed),
                                       .dk = kv_part(state.computed, 0),
                                       .dv = kv_part(state.computed, 1)};
    kernel_.backward(inputs(state), saved.out, saved.lse, dout, gradients);
  }

  void epilogue(BackwardState& state) const override {
    state.pending = to_rows(state.computed, "backward epilogue");
    state.computed.reset();
  }

  void finish(BackwardState& state) const override {
    const at::Tensor rows = unpacked(state.pending->wait());
    state.pending.reset();
    write_query(state.dq, query_part(rows));
    write_kv(state.dk, kv_part(rows, 0));
    write_kv(state.dv, kv_part(rows, 1));
  }

 private:
  std::size_t degree() const { return static_cast<std::size_t>(block().degree); }
  std::int64_t tokens() const { return block().tokens; }

  // The q, k and v columns of packed rows: (..., h+2g, D).
  at::Tensor query_part(const at::Tensor& rows) const { return rows.narrow(-2, 0, heads_.query); }
  at::Tensor kv_part(const at::Tensor& rows, std::int64_t index) const {
    return rows.narrow(-2, heads_.query + index * heads_.kv, heads_.kv);
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

  // Rows for each rank of the node, ready to send: (k, t, heads, D), contiguous.
  at::Tensor packed(std::int64_t heads, const at::Tensor& like) const {
    return at::empty({block().degree, tokens(), heads, like.size(2)}, like.options());
  }
  // (t, all heads, D) as (k, t, heads, D).
  at::Tensor by_rank(const at::Tensor& x, std::int64_t heads) const {
    return x.reshape({tokens(), block().degree, heads, x.size(-1)}).transpose(0, 1);
  }
  // Received rows (k * t, heads, D) as (k, t, heads, D).
  at::Tensor unpacked(const at::Tensor& rows) const {
    return rows.view({block().degree, tokens(), rows.size(1), rows.size(2)});
  }

  std::unique_ptr<Pending> to_heads(const at::Tensor& rows, std::string_view phase) const {
    return communicator_.exchange(
        rows.flatten(0, 1), own_counts_, node_counts_, {phase, block().degree});
  }
  std::unique_ptr<Pending> to_rows(const at::Tensor& heads, std::string_view phase) const {
    return communicator_.exchange(
        to_sources_.apply(heads), node_counts_, own_counts_, {phase, block().degree});
  }

  void write_query(const at::Tensor& to, const at::Tensor& rows) const {
    to.view({tokens(), block().degree, heads_.query, to.size(2)}).copy_(rows.transpose(0, 1));
  }

  // The gradient of a KV head is the sum over its copies, in float32 (float64 for float64).
  void write_kv(const at::Tensor& to, const at::Tensor& rows) const {
    if (heads_.copies == 1) {
      to.view({tokens(), block().degree, heads_.kv, to.size(2)}).copy_(rows.transpose(0, 1));
      return;
    }
    const auto type = to.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor copies =
        rows.transpose(0, 1).reshape({to.size(0), to.size(1), heads_.copies, to.size(2)});
    to.copy_(at::sum(copies, {2}, false, type));
  }

  HeadSplit heads_;
  Communicator& communicator_;
  AttentionKernel& kernel_;
  Ragged sequences_;
  RowPermutation to_sequences_;
  RowPermutation to_sources_;
  Counts own_counts_;   // this rank's rows, once for every rank of the node
  Counts node_counts_;  // the rows of every rank of the node
};

}  // namespace

std::unique_ptr<LevelBackend> make_ulysses(Block block,
                                           const HeadSplit& heads,
                                           Communicator& communicator,
                                           AttentionKernel& kernel) {
  return std::make_unique<Ulysses>(std::move(block), heads, communicator, kernel);
}

}  // namespace nsp
