// Some rows of tensors, in any order.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/exec/row_index.h"

namespace nsp {

// Tensors (T, ...) of `total` rows and (N, ...) of the selected ones, equal in type. Thread-safe.
class RowSelection {
 public:
  // rows[i] < total is what row i of a selection is; a row may be selected twice.
  RowSelection(const std::vector<std::int64_t>& rows, std::int64_t total);

  std::int64_t count() const { return count_; }
  // Every row, in order: then nothing is copied.
  bool all() const { return all_; }

  at::Tensor select(const at::Tensor& rows) const;
  // `selected` is added to, or put in place of, the rows that it is a selection of. To put back,
  // rows are selected once.
  void add(const at::Tensor& selected, const at::Tensor& rows) const;
  void put(const at::Tensor& selected, const at::Tensor& rows) const;

 private:
  bool all_;
  std::int64_t count_;
  RowIndex index_;
};

}  // namespace nsp
