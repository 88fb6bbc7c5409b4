// The backward prologue of an ulysses level in a recomputed pass: what each row brings into head
// layout beside dout, and how the parts' operands are put together.
//
//              beside dout
//   save_qkv   out            (q, k, v are in the stash, in head layout)
//   save       out, q, k, v
//   rest       nothing        (all kept from the forward pass just run)
//
// What a rank sends to another one is one piece: the parts in turn, each as its rows of so many
// heads. One exchange carries rows of unlike width because it counts single heads, units of
// head_dim values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/exec/backend.h"
#include "nsp/exec/copy_heads.h"
#include "nsp/exec/heads.h"
#include "nsp/exec/parts.h"
#include "nsp/exec/row_permutation.h"

namespace nsp {

// Of the whole level, by sequence, in head layout, each contiguous.
struct Operands {
  at::Tensor dout, out, qkv;
};

class SavedOperands {
 public:
  SavedOperands(const Parts& parts, const HeadSplit& heads);

  // Units that this rank sends to, and gets from, every rank of a world of so many.
  std::vector<std::int64_t> send_counts(std::int32_t world) const;
  std::vector<std::int64_t> receive_counts(std::int32_t world) const;

  // (units, head_dim), for every rank of the node in turn.
  at::Tensor pack(const BackwardState& state) const;
  Operands merge(const BackwardState& state, const at::Tensor& received) const;

 private:
  struct Section {
    Section(const Block& block, std::int64_t row_heads);

    std::int64_t heads;   // that travel of one row
    std::int64_t tokens;  // rows of this rank
    std::int64_t node;    // rows of all its ranks
    std::vector<std::int64_t> rank_tokens;
    RowPermutation to_sequences;
  };

  std::array<const Section*, 3> sections() const { return {&save_qkv_, &save_, &rest_}; }
  std::int64_t own_units() const;
  std::int64_t units_of(std::size_t rank) const;
  void pack_rows(const Section& section,
                 const BackwardState& state,
                 std::int64_t first_row,
                 std::int64_t first_unit,
                 const at::Tensor& send,
                 HeadCopies& copies) const;
  at::Tensor received_rows(const at::Tensor& received, std::size_t section) const;
  void fill(const Section& section,
            const BackwardState& state,
            const at::Tensor& rows,
            const Operands& to) const;

  HeadSplit heads_;
  std::int32_t first_rank_;
  std::int32_t degree_;
  Section save_qkv_;
  Section save_;
  Section rest_;
};

}  // namespace nsp
