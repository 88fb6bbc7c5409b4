// The sequence-parallel tree over the ranks of a world.
//
//   degree 4          [0 1 2 3]           [4 5 6 7]        world 8, sp_max 4: a forest of two trees
//   degree 2       [0 1]    [2 3]      [4 5]    [6 7]
//   degree 1      [0] [1]  [2] [3]    [4] [5]  [6] [7]      leaves
//
// A node is an aligned group of consecutive ranks; a rank works on the nodes of its leaf-to-root
// path. (arXiv 2609.22755, section 4.1.)
#pragma once

#include <cstdint>
#include <vector>

namespace nsp {

// Largest world: bounds what a plan read from a file can make a program allocate.
constexpr std::int32_t kMaxWorld = 1 << 20;

struct Node {
  std::int32_t first_rank = 0;
  std::int32_t degree = 1;

  bool operator==(const Node&) const = default;
  bool contains(std::int32_t rank) const {
    return rank >= first_rank && rank < first_rank + degree;
  }
};

// Throws BadInput unless world is from 1 to kMaxWorld, sp_max is a power of two and sp_max divides
// world.
void check_tree(std::int32_t world, std::int32_t sp_max);

// 1, 2, 4, ... sp_max.
std::vector<std::int32_t> degrees(std::int32_t sp_max);

// All nodes of one degree, by first rank. `degree` divides world.
std::vector<Node> level(std::int32_t world, std::int32_t degree);

// The node of `degree` that contains `rank`.
Node node_of(std::int32_t rank, std::int32_t degree);

// Whether each node of this degree lies on one host: hosts are consecutive ranks, and nodes
// are aligned. On hosts of 6 pairs stay inside, ranks 4 to 7 do not.
constexpr bool inside_host(std::int32_t degree, std::int32_t ranks_per_host) {
  return ranks_per_host % degree == 0;
}

// True when the node is aligned (first_rank a multiple of degree, degree a power of two <= sp_max)
// and inside the world.
bool is_node(const Node& node, std::int32_t world, std::int32_t sp_max);

}  // namespace nsp
