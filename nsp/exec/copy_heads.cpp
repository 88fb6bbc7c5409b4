#include "nsp/exec/copy_heads.h"

#include "nsp/exec/view.h"

namespace nsp {
namespace {

BlockCopy first_rows(const at::Tensor& from, const at::Tensor& to) {
  const auto value = static_cast<std::int64_t>(from.element_size());
  return {.from = from.const_data_ptr(),
          .from_pitch = from.stride(-3) * value,
          .to = to.mutable_data_ptr(),
          .to_pitch = to.stride(-3) * value,
          .width = from.size(-2) * from.size(-1) * value,
          .rows = from.size(-3)};
}

BlockCopy moved(BlockCopy block, std::int64_t from_bytes, std::int64_t to_bytes) {
  block.from = static_cast<const char*>(block.from) + from_bytes;
  block.to = static_cast<char*>(block.to) + to_bytes;
  return block;
}

// A block for each entry of the dimensions before the rows, from `dim` on.
void add_blocks(const at::Tensor& from,
                const at::Tensor& to,
                std::int64_t dim,
                const BlockCopy& block,
                std::vector<BlockCopy>& blocks) {
  if (dim == from.dim() - 3) {
    blocks.push_back(block);
    return;
  }
  const auto value = static_cast<std::int64_t>(from.element_size());
  for (std::int64_t i = 0; i < from.size(dim); ++i) {
    const BlockCopy entry = moved(block, i * from.stride(dim) * value, i * to.stride(dim) * value);
    add_blocks(from, to, dim + 1, entry, blocks);
  }
}

}  // namespace

void HeadCopies::add(const at::Tensor& from, const at::Tensor& to) {
  if (!heads_adjacent(from) || !heads_adjacent(to)) {
    to.copy_(from);
    return;
  }
  keep(from, to);
  add_blocks(from, to, 0, first_rows(from, to), blocks_);
}

void HeadCopies::add_rows(const at::Tensor& from,
                          std::int64_t from_row,
                          const at::Tensor& to,
                          std::int64_t to_row,
                          std::int64_t rows) {
  if (!heads_adjacent(from) || !heads_adjacent(to)) {
    part(to, 0, to_row, rows).copy_(part(from, 0, from_row, rows));
    return;
  }
  keep(from, to);
  BlockCopy block = first_rows(from, to);
  block.rows = rows;
  blocks_.push_back(moved(block, from_row * block.from_pitch, to_row * block.to_pitch));
}

void HeadCopies::pack(std::span<const at::Tensor> parts, const at::Tensor& to) {
  std::int64_t head = 0;
  for (const at::Tensor& one : parts) {
    add(one, part(to, to.dim() - 2, head, one.size(-2)));
    head += one.size(-2);
  }
}

void HeadCopies::run() {
  copy_blocks(blocks_, device_);
  blocks_.clear();
  sources_.clear();
}

// Rows that were just repeated for several ranks have no other owner.
void HeadCopies::keep(const at::Tensor& from, const at::Tensor& to) {
  device_ = to.device();
  if (sources_.empty() || !sources_.back().is_alias_of(from.storage())) {
    sources_.push_back(from.storage());
  }
}

void copy_heads(const at::Tensor& from, const at::Tensor& to) {
  HeadCopies copies;
  copies.add(from, to);
  copies.run();
}

std::int64_t heads_of(std::span<const at::Tensor> parts) {
  std::int64_t heads = 0;
  for (const at::Tensor& part : parts) {
    heads += part.size(-2);
  }
  return heads;
}

}  // namespace nsp
