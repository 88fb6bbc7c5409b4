// Assignment::assign: many sequences at once. Sums follow each sequence, all that is derived from
// them (a node's seconds, a rank's dense part and penalty) is renewed once at the end; the state is
// the same as after one move after the other.
#include <vector>

#include "nsp/planner/assignment.h"

namespace nsp {

void Assignment::slide_tokens(std::size_t sequence, Id node, std::int64_t sign) {
  const TableWay& way = costs_.ways()[cells_[node].way];
  const std::size_t first = index(node) << way.level;
  for (std::int32_t i = 0; i < way.way.degree; ++i) {
    add_tokens(ranks_[first + static_cast<std::size_t>(i)],
               sign * slice(problem_.sequences[sequence], way, i));
  }
}

void Assignment::settle_nodes(const std::vector<bool>& changed) {
  for (Id node = 0; node < changed.size(); ++node) {
    if (!changed[node]) {
      continue;
    }
    cells_[node].longest = longest_of(node);
    const Passes change = renew_own(node);
    const std::size_t first = index(node) << level(node);
    for (std::size_t rank = first; rank < first + (std::size_t{1} << level(node)); ++rank) {
      ranks_[rank].cost += change;
    }
  }
}

void Assignment::settle_ranks() {
  if (problem_.model->ep() > 1) {
    settle_groups(touched(0, ranks_.size()));
    return;
  }
  for (Rank& rank : ranks_) {
    settle(rank, problem_.model->dense(rank.tokens));
  }
}

void Assignment::assign(const std::vector<Id>& nodes) {
  std::vector<bool> changed(cells_.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (node_of_[i] == nodes[i]) {
      continue;
    }
    if (node_of_[i] != kNone) {
      changed[node_of_[i]] = true;
      slide_tokens(i, node_of_[i], -1);
      detach(i);
    }
    if (nodes[i] != kNone) {
      changed[nodes[i]] = true;
      slide_tokens(i, nodes[i], 1);
      attach(i, nodes[i]);
    }
  }
  settle_nodes(changed);
  settle_ranks();
}

void Assignment::assign(const std::vector<Node>& nodes) {
  std::vector<Id> ids;
  ids.reserve(nodes.size());
  for (const Node& node : nodes) {
    ids.push_back(id(node));
  }
  assign(ids);
}

void Assignment::assign(const std::vector<Placement>& placements) {
  std::vector<Id> ids;
  ids.reserve(placements.size());
  for (const Placement& placement : placements) {
    ids.push_back(id(placement.node.first_rank, way_of(placement)));
  }
  assign(ids);
}

}  // namespace nsp
