// Row numbers as tensors that index rows on any device.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Copied once to each device that asks for it. Thread-safe.
class RowIndex {
 public:
  explicit RowIndex(const std::vector<std::int64_t>& rows);

  at::Tensor on(at::Device device) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<at::Tensor> copies_;  // the host's first, then one a device
};

}  // namespace nsp
