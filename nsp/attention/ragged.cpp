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
  return kept({device.str(), at::kInt, entries, 0}, device, [&] {
    std::vector<std::int64_t> values = lengths_;
    values.resize(static_cast<std::size_t>(entries), 0);
    return values;
  });
}

at::Tensor Ragged::offsets_on(at::Device device,
                              at::ScalarType dtype,
                              std::int64_t entries,
                              std::int64_t row) const {
  return kept({device.str(), dtype, entries, row}, device, [&] {
    std::vector<std::int64_t> values{0};
    for (const std::int64_t length : lengths_) {
      values.push_back(values.back() + length * row);
    }
    values.resize(static_cast<std::size_t>(entries) + 1, values.back());
    return values;
  });
}

at::Tensor Ragged::kept(const Key& key,
                        at::Device device,
                        const std::function<std::vector<std::int64_t>()>& values) const {
  const std::scoped_lock lock(mutex_);
  auto [entry, added] = tensors_.try_emplace(key);
  if (added) {
    const auto options = at::TensorOptions().dtype(std::get<1>(key));
    entry->second = copy_without_waiting(at::tensor(values(), options), device);
  }
  return entry->second;
}

}  // namespace nsp
