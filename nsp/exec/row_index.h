// Chosen rows of tensors, in an order.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Copied once to each device that asks for it. Thread-safe. Tensors (T, heads, D), contiguous.
class RowIndex {
 public:
  explicit RowIndex(const std::vector<std::int64_t>& order);

  // Row i of `to` becomes row order[i] of `from`.
  void gather(const at::Tensor& from, const at::Tensor& to) const;
  // Row order[i] of `to` becomes row i of `from`; no row stands twice in the order.
  void scatter(const at::Tensor& from, const at::Tensor& to) const;
  at::Tensor on(at::Device device) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<at::Tensor> copies_;  // the host's first, then one a device
};

}  // namespace nsp
