// Copies of heads between layouts, at the width of memory. Tensors (..., heads, D).
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace nsp {

void copy_heads(at::Tensor from, at::Tensor to);

// Writes the heads of all parts, equal in their other sizes, one behind the other.
void pack_heads(std::span<const at::Tensor> parts, const at::Tensor& to);

std::int64_t heads_of(std::span<const at::Tensor> parts);

}  // namespace nsp
