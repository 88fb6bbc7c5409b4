#include "nsp/plan/tree.h"

#include <string>

#include <gtest/gtest.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::string fault(std::int32_t world, std::int32_t sp_max) {
  try {
    check_tree(world, sp_max);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Tree, AcceptsOneTreeAForestAndASingleRank) {
  EXPECT_EQ(fault(8, 8), "");
  EXPECT_EQ(fault(8, 4), "");
  EXPECT_EQ(fault(6, 2), "");
  EXPECT_EQ(fault(7, 1), "");
  EXPECT_EQ(fault(1, 1), "");
}

TEST(Tree, FaultsNameValueAndRemedy) {
  EXPECT_EQ(fault(8, 3), "sp_max 3: must be a power of two (1, 2, 4, ...)");
  EXPECT_EQ(fault(8, 0), "sp_max 0: must be a power of two (1, 2, 4, ...)");
  EXPECT_EQ(fault(8, -4), "sp_max -4: must be a power of two (1, 2, 4, ...)");
  EXPECT_EQ(fault(12, 8),
            "sp_max 8: must divide the world of 12 ranks; the largest that does is 4");
  EXPECT_EQ(fault(4, 8), "sp_max 8: must divide the world of 4 ranks; the largest that does is 4");
  EXPECT_EQ(fault(0, 1), "world 0: must be from 1 to 1048576 ranks");
}

TEST(Tree, LevelsCutTheWorldIntoAlignedNodes) {
  EXPECT_EQ(degrees(8), (std::vector<std::int32_t>{1, 2, 4, 8}));
  EXPECT_EQ(level(8, 4), (std::vector<Node>{{0, 4}, {4, 4}}));
  EXPECT_EQ(node_of(6, 4), (Node{4, 4}));
  for (const std::int32_t degree : degrees(8)) {
    for (std::int32_t rank = 0; rank < 16; ++rank) {
      EXPECT_TRUE(node_of(rank, degree).contains(rank));
      EXPECT_TRUE(is_node(node_of(rank, degree), 16, 8));
    }
  }
}

TEST(Tree, NodesAreAlignedPowersOfTwoInsideTheWorld) {
  EXPECT_FALSE(is_node({1, 2}, 8, 8));
  EXPECT_FALSE(is_node({0, 3}, 8, 8));
  EXPECT_FALSE(is_node({0, 8}, 8, 4));
  EXPECT_FALSE(is_node({8, 1}, 8, 8));
  EXPECT_FALSE(is_node({-2, 2}, 8, 8));
  EXPECT_FALSE(is_node({0, 0}, 8, 8));
}

TEST(Tree, NodesLieInsideHostsThatTheirDegreeDivides) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 6, 8, 12}) {
    for (const std::int32_t degree : degrees(16)) {
      bool inside = true;
      for (const Node& node : level(48, degree)) {
        inside &= node.first_rank / ranks == (node.first_rank + degree - 1) / ranks;
      }
      EXPECT_EQ(inside_host(degree, ranks), inside) << degree << " on hosts of " << ranks;
    }
  }
}

}  // namespace
}  // namespace nsp
