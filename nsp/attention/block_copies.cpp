#include "nsp/attention/block_copies.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>

#include "nsp/attention/copy_list.h"

namespace nsp {
namespace {

void copy_on_host(const BlockCopy& block) {
  constexpr std::int64_t kBytesOfAThread = 1 << 16;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kBytesOfAThread / std::max<std::int64_t>(1, block.width));
  at::parallel_for(0, block.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    const char* from = static_cast<const char*>(block.from) + begin * block.from_pitch;
    char* to = static_cast<char*>(block.to) + begin * block.to_pitch;
    for (std::int64_t row = begin; row < end; ++row) {
      std::memcpy(to, from, static_cast<std::size_t>(block.width));
      from += block.from_pitch;
      to += block.to_pitch;
    }
  });
}

}  // namespace

bool copy_blocks(std::span<const BlockCopy> blocks, at::Device device) {
  if (!device.is_cpu()) {
    return std::ranges::all_of(blocks, is_listable) && launch_copies(blocks, device);
  }
  for (const BlockCopy& block : blocks) {
    if (block.width > 0) {
      copy_on_host(block);
    }
  }
  return true;
}

}  // namespace nsp
