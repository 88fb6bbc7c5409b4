// A partial assignment during search: surrogate cost and tokens of every rank, kept as tree maxima.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/tree.h"
#include "nsp/planner/problem.h"

namespace nsp {

// A plain value: copied when the search branches.
class SearchState {
 public:
  SearchState(std::int32_t world, std::int32_t sp_max);

  // Largest cost, and largest tokens, over the ranks of a node.
  std::int64_t cost(const Node& node) const { return cost_[at(node)]; }
  std::int64_t tokens(const Node& node) const { return tokens_[at(node)]; }
  // Over all ranks.
  std::int64_t cost_max() const;
  // Some sequence is placed on exactly this node.
  bool active(const Node& node) const { return active_[at(node)] != 0; }

  // Whether the node's ranks stay within `budget` tokens when they take their slices of a sequence.
  bool fits(const Node& node, const Sequence& sequence, std::int64_t budget) const;
  // Adds `cost` to each of the node's ranks, and the layout's slices of the sequence.
  void add(const Node& node, const Sequence& sequence, std::int64_t cost);

  // One node of each symmetry class of the tree under the present loads, of the given degree, by
  // first rank.
  void distinct_nodes(std::int32_t degree, std::vector<Node>& out) const;
  // Equal for states that differ only by swapping siblings (or trees of the forest).
  std::uint64_t signature() const;

  std::vector<Node> nodes;       // one a placed sequence, in order
  std::int32_t last_degree = 0;  // of the last placed sequence

 private:
  std::size_t at(const Node& node) const;
  std::size_t trees() const { return static_cast<std::size_t>(world_ / sp_max_); }
  void refresh(std::size_t level, std::size_t index);
  void visit(std::size_t level,
             std::size_t index,
             std::size_t wanted,
             std::vector<Node>& out) const;

  std::int32_t world_;
  std::int32_t sp_max_;
  std::size_t top_;                  // level of the roots: log2(sp_max)
  std::vector<std::size_t> offset_;  // of each level in the arrays below, leaves first
  std::vector<std::int64_t> cost_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::uint8_t> active_;
  std::vector<std::uint64_t> canon_;  // hash of the subtree, blind to the order of siblings
};

}  // namespace nsp
