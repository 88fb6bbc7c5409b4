// Views of a tensor's memory, made without the dispatcher: a layer makes dozens, each of which
// would otherwise cost the host about as much as a small kernel's launch.
//
// A view shares the storage and nothing else: no autograd, no version counter. For memory that the
// executor reads and writes itself, below autograd.
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace nsp {

// Sizes and strides in elements of x; `offset` from its first element.
at::Tensor strided(const at::Tensor& x,
                   at::IntArrayRef sizes,
                   at::IntArrayRef strides,
                   std::int64_t offset = 0);

// Entries [begin, begin + count) of one dimension.
at::Tensor part(const at::Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t count);

// Whether the heads of each row lie side by side: tensors (..., heads, D).
bool heads_adjacent(const at::Tensor& x);

// Replaces tensors (..., heads, D), equal in type and D, by views (..., heads x words): their
// values in the widest words that fit all of them, up to 16 bytes, so that copies run at the width
// of memory. Leaves them as they are where one of them has its heads apart.
void widen(std::span<at::Tensor> tensors);

}  // namespace nsp
