// What the kernel behind copy_blocks is given, as plain numbers.
//
// A block of rows is a list of words of 16 bytes, cut into tiles of kTileWords. Tile t of a launch
// belongs to the last entry whose first_tile is at most t; kThreads threads copy its words:
//
//   word w of an entry   from + (w / width) * from_pitch + (w % width) * 16, and so `to`
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "nsp/attention/block_copies.h"

namespace nsp {

// In the layout that the kernel reads.
struct CopyList {
  struct Entry {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t from_pitch = 0;  // bytes
    std::uint64_t to_pitch = 0;
    std::uint32_t width = 0;  // words of a row
    std::uint32_t words = 0;  // of all rows
    std::uint32_t first_tile = 0;
    std::uint32_t unused = 0;
  };
  static constexpr std::size_t kMost = 64;
  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kTileWords = 4 * kThreads;

  std::array<Entry, kMost> entries{};
  std::uint32_t count = 0;
  std::uint32_t tiles = 0;
};

// Whether all its rows begin and end at multiples of 16 bytes, and its words can be counted.
bool is_listable(const BlockCopy& block);

// Takes listable blocks from the front, as many as one launch has room for; skips empty ones.
// Returns how many it took.
std::size_t fill(CopyList& list, std::span<const BlockCopy> blocks);

// copy_blocks for listable blocks of a CUDA device.
bool launch_copies(std::span<const BlockCopy> blocks, at::Device device);

}  // namespace nsp
