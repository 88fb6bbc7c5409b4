#include "nsp/attention/copy_list.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace nsp {
namespace {

using Word = std::array<std::uint64_t, 2>;

// What one thread of the kernel does (cuda_block_copies.cpp), step by step.
void run_thread(const CopyList& list, std::uint32_t tile, std::uint32_t thread) {
  std::uint32_t entry = 0;
  while (entry + 1 < list.count && list.entries[entry + 1].first_tile <= tile) {
    ++entry;
  }
  const CopyList::Entry& of = list.entries[entry];
  const std::uint32_t begin = (tile - of.first_tile) * CopyList::kTileWords;
  const std::uint32_t end = std::min(begin + CopyList::kTileWords, of.words);
  for (std::uint32_t word = begin + thread; word < end; word += CopyList::kThreads) {
    const std::uint64_t row = word / of.width, offset = word % of.width * std::uint64_t{16};
    std::memcpy(reinterpret_cast<void*>(of.to + row * of.to_pitch + offset),
                reinterpret_cast<const void*>(of.from + row * of.from_pitch + offset),
                16);
  }
}

void run_launches(std::span<const BlockCopy> blocks) {
  CopyList list;
  while (!blocks.empty()) {
    blocks = blocks.subspan(fill(list, blocks));
    for (std::uint32_t tile = 0; tile < list.tiles; ++tile) {
      for (std::uint32_t thread = 0; thread < CopyList::kThreads; ++thread) {
        run_thread(list, tile, thread);
      }
    }
  }
}

// Blocks of many sizes, more than one launch takes, among them empty ones and some of several
// tiles: block i has rows of i % 5 words, of which every other word of the target's pitch stays.
TEST(CopyList, CopiesEveryWordOfEveryBlockOnce) {
  constexpr std::int64_t kBlocks = 150, kRows = 700, kPitch = 8;
  constexpr Word kUntouched = {77, 77};
  std::vector<Word> from(kBlocks * kRows * kPitch), to(from.size(), kUntouched);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = {i, i + 1};
  }
  std::vector<BlockCopy> blocks;
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    const std::int64_t first = i * kRows * kPitch;
    blocks.push_back({.from = &from[static_cast<std::size_t>(first)],
                      .from_pitch = 16 * (i % 5),
                      .to = &to[static_cast<std::size_t>(first)],
                      .to_pitch = 16 * kPitch,
                      .width = 16 * (i % 5),
                      .rows = i * 37 % kRows});
    ASSERT_TRUE(is_listable(blocks.back()));
  }
  run_launches(blocks);
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t word = 0; word < kPitch; ++word) {
        const std::int64_t first = i * kRows * kPitch;
        const bool copied = word < i % 5 && row < i * 37 % kRows;
        const Word wanted =
            copied ? from[static_cast<std::size_t>(first + row * (i % 5) + word)] : kUntouched;
        ASSERT_EQ(to[static_cast<std::size_t>(first + row * kPitch + word)], wanted) << i;
      }
    }
  }
}

TEST(CopyList, TakesWholeWordsOnly) {
  alignas(16) std::array<char, 64> memory{};
  const BlockCopy good{.from = &memory[0],
                       .from_pitch = 16,
                       .to = &memory[32],
                       .to_pitch = 16,
                       .width = 16,
                       .rows = 2};
  EXPECT_TRUE(is_listable(good));
  for (const std::int64_t off : {1, 8}) {
    BlockCopy bad = good;
    bad.from = &memory[static_cast<std::size_t>(off)];
    EXPECT_FALSE(is_listable(bad));
    bad = good;
    bad.to_pitch += off;
    EXPECT_FALSE(is_listable(bad));
    bad = good;
    bad.width -= off;
    EXPECT_FALSE(is_listable(bad));
  }
  BlockCopy huge = good;
  huge.rows = std::int64_t{1} << 31;
  EXPECT_FALSE(is_listable(huge));
}

}  // namespace
}  // namespace nsp
