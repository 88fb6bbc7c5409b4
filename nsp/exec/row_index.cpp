#include "nsp/exec/row_index.h"

#include <algorithm>
#include <array>

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "nsp/attention/device_copy.h"
#include "nsp/exec/view.h"

namespace nsp {

RowIndex::RowIndex(const std::vector<std::int64_t>& order)
    : copies_{at::tensor(order, at::kLong)} {}

void RowIndex::gather(const at::Tensor& from, const at::Tensor& to) const {
  std::array<at::Tensor, 2> wide = {to, from};
  widen(wide);
  at::index_select_out(wide[0], wide[1], 0, on(from.device()));
}

void RowIndex::scatter(const at::Tensor& from, const at::Tensor& to) const {
  std::array<at::Tensor, 2> wide = {to, from};
  widen(wide);
  wide[0].index_copy_(0, on(from.device()), wide[1]);
}

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
