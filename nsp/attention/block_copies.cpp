#include "nsp/attention/block_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include "nsp/attention/copy_list.h"

namespace nsp {
namespace {

void copy_on_host(const BlockCopy& block) {
  constexpr std::int64_t kBytesOfAThread = 1 << 16;
  const std::int64_t grain = std::max<std::int64_t>(1, kBytesOfAThread / block.width);
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

// The widest words that make up both sides; types are words here, not numbers.
std::pair<std::int64_t, at::ScalarType> word_of(const BlockCopy& block) {
  constexpr std::array<std::pair<std::int64_t, at::ScalarType>, 4> kWords = {
      {{16, at::kComplexDouble}, {8, at::kLong}, {4, at::kInt}, {2, at::kShort}}};
  const std::int64_t bits = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block.from) |
                                                      reinterpret_cast<std::uintptr_t>(block.to)) |
                            block.from_pitch | block.to_pitch | block.width;
  for (const auto& word : kWords) {
    if (bits % word.first == 0) {
      return word;
    }
  }
  return {1, at::kByte};
}

void copy_by_torch(const BlockCopy& block, at::Device device) {
  const auto [bytes, type] = word_of(block);
  const auto rows = [&, bytes = bytes, type = type](void* data, std::int64_t pitch) {
    return at::for_blob(data, {block.rows, block.width / bytes})
        .strides({pitch / bytes, 1})
        .options(at::TensorOptions().dtype(type).device(device))
        .target_device(device)
        .make_tensor();
  };
  rows(block.to, block.to_pitch).copy_(rows(const_cast<void*>(block.from), block.from_pitch));
}

}  // namespace

void copy_blocks(std::span<const BlockCopy> blocks, at::Device device) {
  if (device.is_cuda() && std::ranges::all_of(blocks, is_listable) &&
      launch_copies(blocks, device)) {
    return;
  }
  for (const BlockCopy& block : blocks) {
    if (block.width * block.rows > 0) {
      device.is_cpu() ? copy_on_host(block) : copy_by_torch(block, device);
    }
  }
}

}  // namespace nsp
