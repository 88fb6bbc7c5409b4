// Copies of heads between layouts, at the width of memory. Tensors (..., heads, D).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/attention/block_copies.h"

namespace nsp {

// Copies of tensors of one device that are collected and then made together. Sources are kept until
// run(); targets outlive it. No target overlaps another's or a source.
class HeadCopies {
 public:
  // Equal in sizes and type. Copied at once where heads lie apart.
  void add(const at::Tensor& from, const at::Tensor& to);
  // `rows` rows: those of `from` (t, heads, D) from one on to those of `to` from another on.
  void add_rows(const at::Tensor& from,
                std::int64_t from_row,
                const at::Tensor& to,
                std::int64_t to_row,
                std::int64_t rows);
  // The heads of all parts, equal in their other sizes, one behind the other.
  void pack(std::span<const at::Tensor> parts, const at::Tensor& to);
  // On the current stream. Nothing is left to copy afterwards.
  void run();

 private:
  void keep(const at::Tensor& from, const at::Tensor& to);

  std::vector<BlockCopy> blocks_;
  std::vector<c10::Storage> sources_;
  at::Device device_ = at::kCPU;
};

void copy_heads(const at::Tensor& from, const at::Tensor& to);

std::int64_t heads_of(std::span<const at::Tensor> parts);

}  // namespace nsp
