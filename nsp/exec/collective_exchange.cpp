//   rows (t, H, D) -- pack --> (k, t, heads, D) -- all-to-all --> (T, heads, D) by source
//        -- to_sequences --> (T, heads, D) by sequence, and the same way back
//
// Rows are passed over once each time: packed from the layer's own strides, put in order (not at
// all where they lie in order: a node of one sequence), and unpacked into the layer's layout.
#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include "nsp/exec/copy_heads.h"
#include "nsp/exec/head_exchange.h"
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

class Unpacked final : public Pending {
 public:
  Unpacked(std::unique_ptr<Pending> rows, const RankHeads& ranks, std::span<const at::Tensor> to)
      : rows_(std::move(rows)), ranks_(ranks), targets_(to.begin(), to.end()) {}

  at::Tensor wait() override {
    const at::Tensor rows = rows_->wait();
    rows_.reset();
    std::int64_t head = 0;
    HeadCopies copies;
    for (at::Tensor& target : targets_) {
      const std::int64_t heads = target.size(-2);
      copies.add(ranks_.packed(part(rows, 1, head, heads)), std::move(target));
      head += heads;
    }
    copies.run();
    targets_.clear();
    return head < rows.size(1) ? part(rows, 1, head, rows.size(1) - head) : at::Tensor();
  }

 private:
  std::unique_ptr<Pending> rows_;
  RankHeads ranks_;
  std::vector<at::Tensor> targets_;
};

class CollectiveExchange final : public HeadExchange {
 public:
  CollectiveExchange(const Block& block, const HeadSplit& heads, Communicator& communicator)
      : degree_(block.degree),
        level_(block.level_degree),
        tokens_(block.tokens),
        ranks_(block.tokens, block.degree, heads),
        communicator_(communicator),
        to_sequences_(block.to_sequences),
        to_sources_(inverse_permutation(block.to_sequences)),
        own_counts_(over_world(block,
                               Counts(static_cast<std::size_t>(block.degree), block.tokens),
                               communicator.size())),
        node_counts_(over_world(block, block.rank_tokens, communicator.size())) {}

  std::unique_ptr<Pending> to_sequences(std::span<const at::Tensor> parts,
                                        std::string_view phase) const override {
    const at::Tensor& like = parts.front();
    const at::Tensor send =
        at::empty({degree_ * tokens_, heads_of(parts), like.size(-1)}, like.options());
    HeadCopies copies;
    copies.pack(parts, ranks_.packed(send));
    copies.run();
    return to_sequences_.apply(
        communicator_.exchange(send, own_counts_, node_counts_, {phase, level_}));
  }

  std::unique_ptr<Pending> to_rows(const at::Tensor& x,
                                   std::span<const at::Tensor> targets,
                                   std::string_view phase) const override {
    return std::make_unique<Unpacked>(
        communicator_.exchange(to_sources_.apply(x), node_counts_, own_counts_, {phase, level_}),
        ranks_,
        targets);
  }

 private:
  std::int32_t degree_;
  std::int32_t level_;  // degree that names the exchanges
  std::int64_t tokens_;
  RankHeads ranks_;
  Communicator& communicator_;
  RowPermutation to_sequences_;
  RowPermutation to_sources_;
  Counts own_counts_;   // this rank's rows, once for every rank of the node
  Counts node_counts_;  // the rows of every rank of the node
};

}  // namespace

std::unique_ptr<HeadExchange> make_collective_exchange(const Block& block,
                                                       const HeadSplit& heads,
                                                       Communicator& communicator) {
  return std::make_unique<CollectiveExchange>(block, heads, communicator);
}

}  // namespace nsp
