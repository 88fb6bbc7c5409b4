// A permutation of the rows of tensors.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Its index is copied once to each device that asks for it. Thread-safe.
class RowPermutation {
 public:
  explicit RowPermutation(const std::vector<std::int64_t>& order);

  // Row i of the result is row order[i]; `rows` itself, uncopied, when nothing moves.
  at::Tensor apply(const at::Tensor& rows) const;

 private:
  at::Tensor index_on(at::Device device) const;

  at::Tensor host_;
  bool identity_ = true;
  mutable std::mutex mutex_;
  mutable std::map<std::string, at::Tensor> copies_;
};

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order);

}  // namespace nsp
