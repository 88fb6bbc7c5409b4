#include "nsp/attention/block_copies.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace nsp {
namespace {

const at::Device kCpu(at::kCPU);

// Rows of 3 bytes: from every 5 bytes to every 4.
TEST(BlockCopies, MoveRowsFromOnePitchToAnother) {
  const std::array<char, 10> from = {1, 2, 3, 0, 0, 4, 5, 6, 0, 0};
  std::array<char, 8> to{};
  const std::array<BlockCopy, 1> blocks = {{{.from = from.data(),
                                             .from_pitch = 5,
                                             .to = to.data(),
                                             .to_pitch = 4,
                                             .width = 3,
                                             .rows = 2}}};
  EXPECT_TRUE(copy_blocks(blocks, kCpu));
  EXPECT_EQ(to, (std::array<char, 8>{1, 2, 3, 0, 4, 5, 6, 0}));
}

TEST(BlockCopies, TakeEmptyBlocks) {
  char here = 1, there = 2;
  const std::array<BlockCopy, 2> blocks = {{{.from = &here, .to = &there, .width = 1, .rows = 0},
                                            {.from = &here, .to = &there, .width = 0, .rows = 1}}};
  EXPECT_TRUE(copy_blocks(blocks, kCpu));
  EXPECT_TRUE(copy_blocks({}, kCpu));
  EXPECT_EQ(there, 2);
}

}  // namespace
}  // namespace nsp
