#include "nsp/exec/row_index.h"

#include <algorithm>

#include <ATen/ops/tensor.h>

#include "nsp/attention/device_copy.h"

namespace nsp {

RowIndex::RowIndex(const std::vector<std::int64_t>& rows) : copies_{at::tensor(rows, at::kLong)} {}

at::Tensor RowIndex::on(at::Device device) const {
  const std::scoped_lock lock(mutex_);
  const auto there = [&](const at::Tensor& copy) { return copy.device() == device; };
  const auto found = std::ranges::find_if(copies_, there);
  if (found != copies_.end()) {
    return *found;
  }
  return copies_.emplace_back(copy_without_waiting(copies_.front(), device));
}

}  // namespace nsp
