// A permutation of the rows of tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/comm/pending.h"
#include "nsp/exec/row_index.h"

namespace nsp {

// Thread-safe.
class RowPermutation {
 public:
  explicit RowPermutation(const std::vector<std::int64_t>& order);

  // Row i of the result is row order[i]; `rows` (T, heads, D), contiguous; uncopied when nothing
  // moves.
  at::Tensor apply(const at::Tensor& rows) const;
  // Gives what `rows` gives in this order. The permutation outlives it.
  std::unique_ptr<Pending> apply(std::unique_ptr<Pending> rows) const;

 private:
  bool identity_;
  RowIndex index_;
};

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order);

}  // namespace nsp
