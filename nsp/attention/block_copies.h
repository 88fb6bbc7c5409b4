// Copies of blocks of rows from one layout to another, made together: on a GPU in one launch. A
// layer makes many small ones, and a launch each costs the host several microseconds.
#pragma once

#include <cstdint>
#include <span>

#include <c10/core/Device.h>

namespace nsp {

// `rows` times `width` bytes; pitches in bytes from one row to the next.
struct BlockCopy {
  const void* from = nullptr;
  std::int64_t from_pitch = 0;
  void* to = nullptr;
  std::int64_t to_pitch = 0;
  std::int64_t width = 0;
  std::int64_t rows = 0;
};

// Copies all of them, in any order, on the current stream of a GPU, and returns true. On a GPU it
// copies nothing and returns false where a block is not made of words of 16 bytes (copy_list.h), or
// the driver has no such launch. Throws Error when the driver refuses one.
bool copy_blocks(std::span<const BlockCopy> blocks, at::Device device);

}  // namespace nsp
