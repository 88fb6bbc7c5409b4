#include "nsp/exec/row_permutation.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

namespace nsp {
namespace {

class Ordered final : public Pending {
 public:
  Ordered(std::unique_ptr<Pending> rows, const RowPermutation& order)
      : rows_(std::move(rows)), order_(order) {}
  at::Tensor wait() override { return order_.apply(rows_->wait()); }

 private:
  std::unique_ptr<Pending> rows_;
  const RowPermutation& order_;
};

}  // namespace

RowPermutation::RowPermutation(const std::vector<std::int64_t>& order)
    : identity_(std::ranges::is_sorted(order)), index_(order) {}

at::Tensor RowPermutation::apply(const at::Tensor& rows) const {
  if (identity_) {
    return rows;
  }
  at::Tensor result = at::empty(rows.sizes(), rows.options());
  index_.gather(rows, result);
  return result;
}

std::unique_ptr<Pending> RowPermutation::apply(std::unique_ptr<Pending> rows) const {
  return identity_ ? std::move(rows) : std::make_unique<Ordered>(std::move(rows), *this);
}

std::vector<std::int64_t> inverse_permutation(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

}  // namespace nsp
