#include "nsp/exec/row_selection.h"

#include <algorithm>
#include <array>
#include <functional>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include "nsp/exec/view.h"

namespace nsp {

RowSelection::RowSelection(const std::vector<std::int64_t>& rows, std::int64_t total)
    : all_(static_cast<std::int64_t>(rows.size()) == total &&
           std::ranges::adjacent_find(rows, std::ranges::greater_equal()) == rows.end()),
      count_(static_cast<std::int64_t>(rows.size())),
      index_(rows) {}

at::Tensor RowSelection::select(const at::Tensor& rows) const {
  if (all_) {
    return rows;
  }
  c10::SmallVector<std::int64_t, 3> sizes(rows.sizes().begin(), rows.sizes().end());
  sizes[0] = count_;
  at::Tensor result = at::empty(sizes, rows.options());
  std::array<at::Tensor, 2> wide = {result, rows};
  if (rows.dim() == 3) {
    widen(wide);
  }
  at::index_select_out(wide[0], wide[1], 0, index_.on(rows.device()));
  return result;
}

// A row that is selected twice gets the sum of zero and two values: the same in either order.
void RowSelection::add(const at::Tensor& selected, const at::Tensor& rows) const {
  if (all_) {
    rows.add_(selected);
  } else {
    rows.index_add_(0, index_.on(rows.device()), selected);
  }
}

void RowSelection::put(const at::Tensor& selected, const at::Tensor& rows) const {
  if (!all_) {
    rows.index_copy_(0, index_.on(rows.device()), selected);
  } else if (!selected.is_alias_of(rows)) {
    rows.copy_(selected);
  }
}

}  // namespace nsp
