#include "nsp/exec/view.h"

#include <algorithm>
#include <array>
#include <utility>

#include <c10/core/TensorImpl.h>

namespace nsp {
namespace {

at::Tensor make_view(const at::Tensor& x,
                     at::ScalarType type,
                     at::IntArrayRef sizes,
                     at::IntArrayRef strides,
                     std::int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW,
                                                             c10::Storage(x.storage()),
                                                             x.key_set(),
                                                             c10::scalarTypeToTypeMeta(type));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

// Types are words here, not numbers: copies only.
constexpr std::array<std::pair<std::int64_t, at::ScalarType>, 2> kWords = {
    {{16, at::kComplexDouble}, {8, at::kLong}}};

bool fits(const at::Tensor& x, std::int64_t word) {
  const auto value = static_cast<std::int64_t>(x.element_size());
  const auto whole = [&](std::int64_t values) { return values * value % word == 0; };
  const at::IntArrayRef outer = x.strides().slice(0, static_cast<std::size_t>(x.dim() - 2));
  return whole(x.size(-1)) && whole(x.storage_offset()) && std::ranges::all_of(outer, whole) &&
         reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % static_cast<std::size_t>(word) == 0;
}

// (..., heads, D) as (..., heads * D / values), each element `values` values of x.
at::Tensor merged(const at::Tensor& x, at::ScalarType type, std::int64_t values) {
  c10::SmallVector<std::int64_t, 6> sizes(x.sizes().begin(), x.sizes().end() - 1);
  c10::SmallVector<std::int64_t, 6> strides(x.strides().begin(), x.strides().end() - 1);
  for (std::int64_t& stride : strides) {
    stride /= values;
  }
  sizes.back() = x.size(-2) * x.size(-1) / values;
  strides.back() = 1;
  return make_view(x, type, sizes, strides, x.storage_offset() / values);
}

}  // namespace

at::Tensor strided(const at::Tensor& x,
                   at::IntArrayRef sizes,
                   at::IntArrayRef strides,
                   std::int64_t offset) {
  return make_view(x, x.scalar_type(), sizes, strides, x.storage_offset() + offset);
}

at::Tensor part(const at::Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t count) {
  c10::SmallVector<std::int64_t, 6> sizes(x.sizes().begin(), x.sizes().end());
  sizes[static_cast<std::size_t>(dim)] = count;
  return strided(x, sizes, x.strides(), begin * x.stride(dim));
}

bool heads_adjacent(const at::Tensor& x) {
  return x.stride(-1) == 1 && (x.stride(-2) == x.size(-1) || x.size(-2) == 1);
}

void widen(std::span<at::Tensor> tensors) {
  if (!std::ranges::all_of(tensors, heads_adjacent)) {
    return;
  }
  at::ScalarType type = tensors.front().scalar_type();
  std::int64_t values = 1;
  for (const auto& [bytes, word] : kWords) {
    const auto fit = [&, size = bytes](const at::Tensor& x) { return fits(x, size); };
    if (std::ranges::all_of(tensors, fit)) {
      type = word;
      values = bytes / static_cast<std::int64_t>(tensors.front().element_size());
      break;
    }
  }
  for (at::Tensor& x : tensors) {
    x = merged(x, type, values);
  }
}

}  // namespace nsp
