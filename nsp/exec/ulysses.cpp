// Ulysses (arXiv 2309.14509) over one node. Letters in comments: k ranks in the node, t rows of
// this rank, T rows of the node, h query and g KV heads a rank, D head_dim.
//
//   rows (t, H, D) -- pack --> (k, t, h+2g, D) -- exchange --> (T, h+2g, D) by source
//        -- to_sequences --> (T, h+2g, D) by sequence: q | k | v, attention, and the same way back
//
// Unequal rows and heads travel in one exchange because a row carries q, k and v of one token. Rows
// are passed over once each time: packed from the layer's own strides, put in order (not at all
// where they lie in order: a node of one sequence), and unpacked into the layer's layout. Copied KV
// heads are packed from, and summed into, the layer's layout too.
#include <array>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/rank_heads.h"
#include "nsp/exec/row_permutation.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// Counts over the whole world; ranks outside the node have none.
Counts over_world(const Block& block, const Counts& node_counts, std::int32_t world) {
  Counts counts(static_cast<std::size_t>(world), 0);
  std::copy(node_counts.begin(), node_counts.end(), counts.begin() + block.first_rank);
  return counts;
}

void copy_heads(at::Tensor from, at::Tensor to) {
  std::array<at::Tensor, 2> wide = {std::move(from), std::move(to)};
  widen(wide);
  wide[1].copy_(wide[0]);
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
    const at::Tensor send = rows_to_send(heads_.query + 2 * heads_.kv, state.q);
    std::array<at::Tensor, 4> wide = {
        ranks().query(state.q), ranks().kv(state.k), ranks().kv(state.v), ranks().packed(send)};
    widen(wide);
    at::cat_out(wide[3], at::TensorList(wide.data(), 3), ranks().head_dimension());
    state.pending = to_heads(send, "forward prologue");
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
    const at::Tensor rows = state.pending->wait();
    state.pending.reset();
    copy_heads(ranks().packed(rows), ranks().query(state.out));
  }

  void prologue(BackwardState& state) const override {
    const at::Tensor send = rows_to_send(heads_.query, state.dout);
    copy_heads(ranks().query(state.dout), ranks().packed(send));
    state.pending = to_heads(send, "backward prologue");
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
    const at::Tensor rows = state.pending->wait();
    state.pending.reset();
    copy_heads(ranks().packed(query_part(rows)), ranks().query(state.dq));
    write_kv(state.dk, kv_part(rows, 0));
    write_kv(state.dv, kv_part(rows, 1));
  }

 private:
  std::size_t degree() const { return static_cast<std::size_t>(block().degree); }
  std::int64_t tokens() const { return block().tokens; }
  RankHeads ranks() const { return RankHeads(tokens(), block().degree, heads_); }

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

  // Rows for each rank of the node in turn: (k * t, heads, D).
  at::Tensor rows_to_send(std::int64_t heads, const at::Tensor& like) const {
    return at::empty({block().degree * tokens(), heads, like.size(2)}, like.options());
  }

  std::unique_ptr<Pending> to_heads(const at::Tensor& rows, std::string_view phase) const {
    return communicator_.exchange(rows, own_counts_, node_counts_, {phase, block().level});
  }
  std::unique_ptr<Pending> to_rows(const at::Tensor& heads, std::string_view phase) const {
    return communicator_.exchange(
        to_sources_.apply(heads), node_counts_, own_counts_, {phase, block().level});
  }

  // The gradient of a KV head is the sum over its copies (in float32 at least).
  void write_kv(const at::Tensor& to, const at::Tensor& rows) const {
    if (heads_.copies == 1) {
      copy_heads(ranks().packed(rows), ranks().kv(to));
    } else {
      at::Tensor sum = to;
      at::sum_out(sum, ranks().copies(rows), {2}, false);
    }
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
