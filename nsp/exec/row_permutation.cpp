#include "nsp/exec/row_permutation.h"

#include <algorithm>
#include <array>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include "nsp/exec/view.h"

namespace nsp {

RowPermutation::RowPermutation(const std::vector<std::int64_t>& order)
    : identity_(std::ranges::is_sorted(order)), order_(order) {}

at::Tensor RowPermutation::apply(const at::Tensor& rows) const {
  if (identity_) {
    return rows;
  }
  at::Tensor result = at::empty(rows.sizes(), rows.options());
  std::array<at::Tensor, 2> wide = {result, rows};
  widen(wide);
  at::index_select_out(wide[0], wide[1], 0, order_.on(rows.device()));
  return result;
}

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

}  // namespace nsp
