#include "nsp/attention/ragged.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>

#include "nsp/attention/device_copy.h"

namespace nsp {
at::Tensor copy_without_waiting(const at::Tensor& host, at::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, host.scalar_type(), true);
}

Ragged::Ragged(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {
  for (const std::int64_t length : lengths_) {
    tokens_ += length;
    longest_ = std::max(longest_, length);
  }
}

at::Tensor Ragged::lengths_on(at::Device device, std::int64_t entries) const {
  return kept(device, at::kInt, entries, 0);
}

at::Tensor Ragged::offsets_on(at::Device device,
                              at::ScalarType dtype,
                              std::int64_t entries,
                              std::int64_t row) const {
  return kept(device, dtype, entries, row);
}

std::vector<std::int64_t> Ragged::values(std::int64_t entries, std::int64_t row) const {
  std::vector<std::int64_t> result;
  if (row == 0) {
    result = lengths_;
    result.resize(static_cast<std::size_t>(entries), 0);
    return result;
  }
  result.push_back(0);
  for (const std::int64_t length : lengths_) {
    result.push_back(result.back() + length * row);
  }
  result.resize(static_cast<std::size_t>(entries) + 1, result.back());
  return result;
}

at::Tensor Ragged::kept(at::Device device,
                        at::ScalarType dtype,
                        std::int64_t entries,
                        std::int64_t row) const {
  const std::scoped_lock lock(mutex_);
  auto [entry, added] = tensors_.try_emplace({device.type(), device.index(), dtype, entries, row});
  if (added) {
    const auto options = at::TensorOptions().dtype(dtype);
    entry->second = copy_without_waiting(at::tensor(values(entries, row), options), device);
  }
  return entry->second;
}

}  // namespace nsp
