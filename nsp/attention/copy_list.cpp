#include "nsp/attention/copy_list.h"

#include <cstddef>

namespace nsp {
namespace {

constexpr std::int64_t kWord = 16;
constexpr std::int64_t kMostWords = std::int64_t{1} << 31;

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

bool is_whole(std::uint64_t bytes) {
  return bytes % kWord == 0;
}

}  // namespace

// The kernel's offsets.
static_assert(sizeof(CopyList::Entry) == 48);
static_assert(offsetof(CopyList, count) == 3072 && sizeof(CopyList) == 3080);

bool is_listable(const BlockCopy& block) {
  return is_whole(address(block.from)) && is_whole(address(block.to)) &&
         block.from_pitch % kWord == 0 && block.to_pitch % kWord == 0 && block.width % kWord == 0 &&
         block.rows * (block.width / kWord) < kMostWords;
}

std::size_t fill(CopyList& list, std::span<const BlockCopy> blocks) {
  list.count = list.tiles = 0;
  std::size_t taken = 0;
  for (; taken < blocks.size() && list.count < CopyList::kMost; ++taken) {
    const BlockCopy& block = blocks[taken];
    const auto width = static_cast<std::uint32_t>(block.width / kWord);
    const auto words = static_cast<std::uint32_t>(block.rows) * width;
    if (words > 0) {
      list.entries[list.count++] = {.from = address(block.from),
                                    .to = address(block.to),
                                    .from_pitch = static_cast<std::uint64_t>(block.from_pitch),
                                    .to_pitch = static_cast<std::uint64_t>(block.to_pitch),
                                    .width = width,
                                    .words = words,
                                    .first_tile = list.tiles};
      list.tiles += (words + CopyList::kTileWords - 1) / CopyList::kTileWords;
    }
  }
  return taken;
}

}  // namespace nsp
