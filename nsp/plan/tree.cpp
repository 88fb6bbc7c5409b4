#include "nsp/plan/tree.h"

#include <bit>
#include <string>

#include "nsp/base/error.h"

namespace nsp {
namespace {

bool is_power_of_two(std::int32_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint32_t>(value));
}

}  // namespace

void check_tree(std::int32_t world, std::int32_t sp_max) {
  if (world < 1 || world > kMaxWorld) {
    bad_input("world", world, "must be from 1 to " + std::to_string(kMaxWorld) + " ranks");
  }
  if (!is_power_of_two(sp_max)) {
    bad_input("sp_max", sp_max, "must be a power of two (1, 2, 4, ...)");
  }
  if (world % sp_max != 0) {
    const std::int32_t largest = world & -world;
    bad_input("sp_max",
              sp_max,
              "must divide the world of " + std::to_string(world) +
                  " ranks; the largest that does is " + std::to_string(largest));
  }
}

std::vector<std::int32_t> degrees(std::int32_t sp_max) {
  std::vector<std::int32_t> result;
  for (std::int32_t degree = 1; degree <= sp_max; degree *= 2) {
    result.push_back(degree);
  }
  return result;
}

std::vector<Node> level(std::int32_t world, std::int32_t degree) {
  std::vector<Node> nodes;
  for (std::int32_t first = 0; first < world; first += degree) {
    nodes.push_back({.first_rank = first, .degree = degree});
  }
  return nodes;
}

Node node_of(std::int32_t rank, std::int32_t degree) {
  return {.first_rank = rank - rank % degree, .degree = degree};
}

bool is_node(const Node& node, std::int32_t world, std::int32_t sp_max) {
  return is_power_of_two(node.degree) && node.degree <= sp_max && node.first_rank >= 0 &&
         node.first_rank % node.degree == 0 && node.first_rank <= world - node.degree;
}

}  // namespace nsp
