// A permutation of the rows of tensors.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Its index is copied once to each device that asks for it. Thread-safe.
class RowPermutation {
 public:
  explicit RowPermutation(const std::vector<std::int64_t>& order);

  // Row i of the result is row order[i]; `rows` (T, heads, D), contiguous; uncopied when nothing
  // moves.
  at::Tensor apply(const at::Tensor& rows) const;
  // The same into `to`, contiguous; `rows` may have any strides.
  void apply_into(const at::Tensor& rows, const at::Tensor& to) const;

 private:
  at::Tensor index_on(at::Device device) const;

  bool identity_;
  mutable std::mutex mutex_;
  mutable std::vector<at::Tensor> copies_;  // the host's first, then one a device
};

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order);

}  // namespace nsp
