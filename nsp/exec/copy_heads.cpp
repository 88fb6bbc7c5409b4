#include "nsp/exec/copy_heads.h"

#include <array>
#include <cstddef>

#include "nsp/attention/block_copies.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

// A block for each entry of the dimensions before the rows; `from` and `to` point to its first.
struct Blocks {
  const at::Tensor& from;
  const at::Tensor& to;
  std::vector<BlockCopy>& blocks;

  void add(std::int64_t dim, std::int64_t from_first, std::int64_t to_first) const {
    const std::int64_t rows = from.dim() - 3;
    if (dim == rows) {
      add_rows(rows, from_first, to_first);
      return;
    }
    for (std::int64_t i = 0; i < from.size(dim); ++i) {
      add(dim + 1, from_first + i * from.stride(dim), to_first + i * to.stride(dim));
    }
  }

  void add_rows(std::int64_t rows, std::int64_t from_first, std::int64_t to_first) const {
    const auto value = static_cast<std::int64_t>(from.element_size());
    blocks.push_back({.from = static_cast<const char*>(from.const_data_ptr()) + from_first * value,
                      .from_pitch = from.stride(rows) * value,
                      .to = static_cast<char*>(to.mutable_data_ptr()) + to_first * value,
                      .to_pitch = to.stride(rows) * value,
                      .width = from.size(-2) * from.size(-1) * value,
                      .rows = from.size(rows)});
  }
};

}  // namespace

void HeadCopies::add(at::Tensor from, at::Tensor to) {
  copies_.emplace_back(std::move(from), std::move(to));
}

void HeadCopies::pack(std::span<const at::Tensor> parts, const at::Tensor& to) {
  std::int64_t head = 0;
  for (const at::Tensor& one : parts) {
    add(one, part(to, to.dim() - 2, head, one.size(-2)));
    head += one.size(-2);
  }
}

void HeadCopies::run() {
  if (!run_together()) {
    for (auto& [from, to] : copies_) {
      copy_heads(std::move(from), std::move(to));
    }
  }
  copies_.clear();
}

bool HeadCopies::run_together() const {
  if (copies_.empty()) {
    return true;
  }
  std::vector<BlockCopy> blocks;
  blocks.reserve(copies_.size());
  for (const auto& [from, to] : copies_) {
    if (!heads_adjacent(from) || !heads_adjacent(to)) {
      return false;
    }
    Blocks{from, to, blocks}.add(0, 0, 0);
  }
  return copy_blocks(blocks, copies_.front().first.device());
}

void copy_heads(at::Tensor from, at::Tensor to) {
  std::array<at::Tensor, 2> wide = {std::move(from), std::move(to)};
  widen(wide);
  wide[1].copy_(wide[0]);
}

std::int64_t heads_of(std::span<const at::Tensor> parts) {
  std::int64_t heads = 0;
  for (const at::Tensor& part : parts) {
    heads += part.size(-2);
  }
  return heads;
}

}  // namespace nsp
