#include "nsp/plan/relabel.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/base/random.h"

namespace nsp {
namespace {

using Groups = std::vector<std::vector<std::int32_t>>;

// Every group is an aligned node of its size that holds exactly the ranks of its workers, and every
// rank has one worker: so each rank runs the jobs of its worker, with the same loads.
void expect_same_schedule(std::int32_t world, const Groups& groups) {
  const Relabelling result = relabel(world, groups);
  std::vector<std::int32_t> ranks = result.rank_of;
  std::ranges::sort(ranks);
  for (std::int32_t rank = 0; rank < world; ++rank) {
    ASSERT_EQ(ranks[static_cast<std::size_t>(rank)], rank);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Node& node = result.nodes[g];
    ASSERT_TRUE(is_node(node, world, 1 << 20)) << "group " << g;
    ASSERT_EQ(node.degree, std::ssize(groups[g]));
    for (const std::int32_t worker : groups[g]) {
      ASSERT_TRUE(node.contains(result.rank_of[static_cast<std::size_t>(worker)])) << "group " << g;
    }
  }
}

// A random part of the workers: nested groups of random power-of-two sizes.
void add_groups(Random& random, const std::vector<std::int32_t>& workers, Groups& groups) {
  std::size_t begin = 0;
  while (begin < workers.size()) {
    const std::size_t size = std::size_t{1} << random.below(5);
    if (begin + size > workers.size()) {
      ++begin;  // stays single
      continue;
    }
    const auto first = workers.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<std::int32_t> group(first, first + static_cast<std::ptrdiff_t>(size));
    if (random.below(4) != 0) {
      groups.push_back(group);
      if (size > 1 && size < workers.size()) {
        add_groups(random, group, groups);
      }
    }
    begin += size;
  }
}

TEST(Relabel, ScatteredGroupsBecomeAlignedNodes) {
  // {5, 0, 6, 3} holds {6, 0}; {1, 4} stands beside; 2 and 7 are left over.
  const Relabelling result = relabel(8, {{6, 0}, {1, 4}, {5, 0, 6, 3}});
  EXPECT_EQ(result.nodes, (std::vector<Node>{{0, 2}, {4, 2}, {0, 4}}));
  EXPECT_EQ(result.rank_of, (std::vector<std::int32_t>{0, 4, 6, 2, 5, 3, 1, 7}));
}

TEST(Relabel, AnyLaminarFamilyKeepsItsLoads) {
  Random random(71);
  for (int i = 0; i < 500; ++i) {
    const auto world = static_cast<std::int32_t>(1 + random.below(40));
    std::vector<std::int32_t> workers(static_cast<std::size_t>(world));
    for (std::int32_t worker = 0; worker < world; ++worker) {
      workers[static_cast<std::size_t>(worker)] = worker;
    }
    for (std::size_t at = workers.size(); at > 1; --at) {
      std::swap(workers[at - 1], workers[random.below(at)]);
    }
    Groups groups;
    add_groups(random, workers, groups);
    for (std::size_t at = groups.size(); at > 1; --at) {
      std::swap(groups[at - 1], groups[random.below(at)]);
    }
    if (!groups.empty()) {
      groups.push_back(groups.front());  // the same group may come again
      std::ranges::reverse(groups.back());
    }
    expect_same_schedule(world, groups);
  }
}

TEST(Relabel, WhatCannotBeAlignedIsRefused) {
  EXPECT_THROW(relabel(4, {{0, 1}, {1, 2}}), BadInput);
  EXPECT_THROW(relabel(8, {{0, 1, 2, 3}, {3, 4}}), BadInput);
  EXPECT_THROW(relabel(4, {{0, 1, 2}}), BadInput);
  EXPECT_THROW(relabel(4, {{}}), BadInput);
  EXPECT_THROW(relabel(4, {{0, 0}}), BadInput);
  EXPECT_THROW(relabel(4, {{3, 4}}), BadInput);
  EXPECT_THROW(relabel(0, {}), BadInput);
}

}  // namespace
}  // namespace nsp
