#include "nsp/exec/row_permutation.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "nsp/attention/device_copy.h"

namespace nsp {

RowPermutation::RowPermutation(const std::vector<std::int64_t>& order)
    : host_(at::tensor(order, at::kLong)) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    identity_ = identity_ && order[i] == static_cast<std::int64_t>(i);
  }
}

at::Tensor RowPermutation::apply(const at::Tensor& rows) const {
  return identity_ ? rows : at::index_select(rows, 0, index_on(rows.device()));
}

at::Tensor RowPermutation::index_on(at::Device device) const {
  const std::scoped_lock lock(mutex_);
  auto [entry, added] = copies_.try_emplace(device.str());
  if (added) {
    entry->second = copy_without_waiting(host_, device);
  }
  return entry->second;
}

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

}  // namespace nsp
