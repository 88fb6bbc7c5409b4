#include "nsp/exec/row_permutation.h"

#include <algorithm>
#include <array>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "nsp/attention/device_copy.h"
#include "nsp/exec/view.h"

namespace nsp {

RowPermutation::RowPermutation(const std::vector<std::int64_t>& order)
    : identity_(std::ranges::is_sorted(order)), copies_{at::tensor(order, at::kLong)} {}

at::Tensor RowPermutation::apply(const at::Tensor& rows) const {
  if (identity_) {
    return rows;
  }
  at::Tensor result = at::empty(rows.sizes(), rows.options());
  apply_into(rows, result);
  return result;
}

void RowPermutation::apply_into(const at::Tensor& rows, const at::Tensor& to) const {
  std::array<at::Tensor, 2> wide = {to, rows};
  widen(wide);
  if (identity_) {
    wide[0].copy_(wide[1]);
  } else {
    at::index_select_out(wide[0], wide[1], 0, index_on(rows.device()));
  }
}

at::Tensor RowPermutation::index_on(at::Device device) const {
  const std::scoped_lock lock(mutex_);
  const auto there = [&](const at::Tensor& copy) { return copy.device() == device; };
  const auto found = std::ranges::find_if(copies_, there);
  if (found != copies_.end()) {
    return *found;
  }
  return copies_.emplace_back(copy_without_waiting(copies_.front(), device));
}

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

}  // namespace nsp
