// Copies of heads between layouts, at the width of memory. Tensors (..., heads, D).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Copies that are collected and then made together (nsp/attention/block_copies.h), or one by one
// where heads lie apart. No target overlaps another's or a source.
class HeadCopies {
 public:
  // Equal in sizes, type and device; both are kept until run().
  void add(at::Tensor from, at::Tensor to);
  // The heads of all parts, equal in their other sizes, one behind the other.
  void pack(std::span<const at::Tensor> parts, const at::Tensor& to);
  // On the current stream. Nothing is left to copy afterwards.
  void run();

 private:
  bool run_together() const;

  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
};

void copy_heads(at::Tensor from, at::Tensor to);

std::int64_t heads_of(std::span<const at::Tensor> parts);

}  // namespace nsp
