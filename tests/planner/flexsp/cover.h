// Groups that cover the ranks, side by side, each an aligned node.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "nsp/plan/tree.h"

namespace nsp {

inline void expect_cover(const std::vector<Node>& groups, std::int32_t world, std::int32_t sp_max) {
  std::int32_t next = 0;
  for (const Node& node : groups) {
    EXPECT_EQ(node.first_rank, next);
    EXPECT_TRUE(is_node(node, world, sp_max));
    next += node.degree;
  }
  EXPECT_EQ(next, world);
}

}  // namespace nsp
