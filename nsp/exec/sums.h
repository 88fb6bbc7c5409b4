// Results of attention over parts of the keys, put together.
#pragma once

#include <ATen/core/Tensor.h>

namespace nsp {

// What parts are added up in: float64 for float64 rows, else float32.
at::ScalarType sum_type(at::ScalarType rows);

// The rows in that type: themselves where they have it.
at::Tensor as_sum(const at::Tensor& rows);

// Takes a further part of the keys into out (T, heads, head_dim) and lse (T, heads): both are of
// the type of sums, as the part is.
void merge(const at::Tensor& out,
           at::Tensor& lse,
           const at::Tensor& part,
           const at::Tensor& part_lse);

}  // namespace nsp
