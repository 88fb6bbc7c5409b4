#include "nsp/exec/sums.h"

#include <ATen/ops/logaddexp.h>
#include <ATen/ops/sub.h>

namespace nsp {

at::ScalarType sum_type(at::ScalarType rows) {
  return rows == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor as_sum(const at::Tensor& rows) {
  return rows.to(sum_type(rows.scalar_type()));
}

// The part's weight is exp(b) / (exp(a) + exp(b)) for the two log-sum-exps a and b.
void merge(const at::Tensor& out,
           at::Tensor& lse,
           const at::Tensor& part,
           const at::Tensor& part_lse) {
  const at::Tensor weight = at::sub(part_lse, lse).sigmoid_();
  out.lerp_(part, weight.unsqueeze(-1));
  at::logaddexp_out(lse, lse, part_lse);
}

}  // namespace nsp
