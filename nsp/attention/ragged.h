// Sequences that lie one after another along the token dimension, and their boundaries on devices.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Immutable lengths; the device tensors that kernels read are made once and kept with them, so that
// a layer's launch neither computes nor copies them. Thread-safe. Not copyable: share it.
class Ragged {
 public:
  // Every length >= 1.
  explicit Ragged(std::vector<std::int64_t> lengths);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  std::int64_t count() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t longest() const { return longest_; }

  // int32 (entries): the lengths, then zeros. entries >= count().
  at::Tensor lengths_on(at::Device device, std::int64_t entries) const;
  // `dtype` (entries + 1): the first element of each sequence when a token takes `row` elements,
  // then the total.
  at::Tensor offsets_on(at::Device device,
                        at::ScalarType dtype,
                        std::int64_t entries,
                        std::int64_t row) const;

 private:
  // Device type and index, value type, entries, elements a row (0: lengths).
  using Key =
      std::tuple<at::DeviceType, at::DeviceIndex, at::ScalarType, std::int64_t, std::int64_t>;
  at::Tensor kept(at::Device device,
                  at::ScalarType dtype,
                  std::int64_t entries,
                  std::int64_t row) const;
  std::vector<std::int64_t> values(std::int64_t entries, std::int64_t row) const;

  std::vector<std::int64_t> lengths_;
  std::int64_t tokens_ = 0;
  std::int64_t longest_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<Key, at::Tensor> tensors_;
};

}  // namespace nsp
