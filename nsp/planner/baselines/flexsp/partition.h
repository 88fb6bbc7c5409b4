// Disjoint groups that cover the ranks, and how many sequences of each bucket they take: what the
// MILPs decide and what dealing turns into placements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/planner/baselines/flexsp/costs.h"
#include "nsp/planner/problem.h"

namespace nsp {

// Groups come largest degree first, side by side from rank 0: since all degrees are powers of two
// that divide the world, each is then an aligned node. Quotas are given to classes of groups: of
// one degree (counts.h), or of one group (exact.h).
struct Partition {
  struct Group {
    std::size_t level = 0;
    std::size_t kind = 0;  // index of its class
  };

  std::vector<Group> groups;        // largest first; world ranks together
  std::size_t kinds = 0;            // classes
  std::vector<std::int64_t> quota;  // bucket by bucket, for each class

  std::int64_t& at(std::size_t bucket, std::size_t kind) { return quota[bucket * kinds + kind]; }
  std::int64_t at(std::size_t bucket, std::size_t kind) const {
    return quota[bucket * kinds + kind];
  }
};

// The groups' nodes.
std::vector<Node> nodes_of(const Partition& partition);

// One node a sequence: longest first, each to the least-loaded group that has room and a class with
// quota left for its bucket; where none has room, to the one with the fewest tokens.
std::vector<Node> deal(CostTable& costs, const LinearCosts& linear, Partition partition);

// The partition behind placements on disjoint `groups`, each group its own class.
Partition partition_of(const LinearCosts& linear,
                       const std::vector<Node>& groups,
                       const std::vector<Node>& placed);

// Largest time of a group that has sequences, under the linear costs; each group its own class.
double linear_time(const LinearCosts& linear, const Partition& partition);

}  // namespace nsp
