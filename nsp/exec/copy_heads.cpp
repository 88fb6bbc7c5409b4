#include "nsp/exec/copy_heads.h"

#include <array>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>

#include "nsp/exec/view.h"

namespace nsp {

void copy_heads(at::Tensor from, at::Tensor to) {
  std::array<at::Tensor, 2> wide = {std::move(from), std::move(to)};
  widen(wide);
  wide[1].copy_(wide[0]);
}

void pack_heads(std::span<const at::Tensor> parts, const at::Tensor& to) {
  if (parts.size() == 1) {
    copy_heads(parts.front(), to);
    return;
  }
  std::vector<at::Tensor> wide(parts.begin(), parts.end());
  wide.push_back(to);
  const std::int64_t head_dimension = to.dim() - 2;
  widen(wide);
  at::cat_out(wide.back(), at::TensorList(wide.data(), parts.size()), head_dimension);
}

std::int64_t heads_of(std::span<const at::Tensor> parts) {
  std::int64_t heads = 0;
  for (const at::Tensor& part : parts) {
    heads += part.size(-2);
  }
  return heads;
}

}  // namespace nsp
