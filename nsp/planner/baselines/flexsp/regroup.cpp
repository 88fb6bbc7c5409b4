#include "nsp/planner/baselines/flexsp/regroup.h"

#include <algorithm>
#include <utility>

#include "nsp/planner/baselines/flexsp/group_search.h"
#include "nsp/planner/baselines/static.h"

namespace nsp {
namespace {

constexpr std::uint64_t kSeed = 2025;

struct Group {
  std::int32_t degree = 1;
  std::int64_t load = 0;
  std::vector<std::uint32_t> members;
};

// The groups by degree, largest first; of one degree the most loaded first.
std::vector<Group> groups_of(Assignment& state, const Grouping& grouping) {
  state.assign(grouping.placed);
  std::vector<Group> groups;
  for (const Node& node : grouping.groups) {
    const Assignment::Id id = state.id(node);
    groups.push_back(
        {.degree = node.degree, .load = state.node_load(id), .members = state.members(id)});
  }
  std::ranges::stable_sort(groups, [](const Group& a, const Group& b) {
    return a.degree != b.degree ? a.degree > b.degree : a.load > b.load;
  });
  return groups;
}

// Side by side, largest first: aligned, since degrees are powers of two that divide the world.
Grouping lay_out(std::vector<Group> groups, std::size_t sequences) {
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::degree);
  Grouping grouping;
  grouping.placed.resize(sequences);
  std::int32_t first = 0;
  for (const Group& group : groups) {
    grouping.groups.push_back({.first_rank = first, .degree = group.degree});
    first += group.degree;
    for (const std::uint32_t member : group.members) {
      grouping.placed[member] = grouping.groups.back();
    }
  }
  return grouping;
}

std::vector<Group> merged(std::vector<Group> groups, std::size_t first, std::size_t second) {
  Group& into = groups[first];
  const Group& from = groups[second];
  into.degree *= 2;
  into.members.insert(into.members.end(), from.members.begin(), from.members.end());
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
  return groups;
}

// Every other sequence, longest first, to each half.
std::vector<Group> halved(std::vector<Group> groups, std::size_t at) {
  Group half{.degree = groups[at].degree / 2, .load = 0, .members = {}};
  std::vector<std::uint32_t> members = std::move(groups[at].members);
  std::ranges::sort(members);
  groups[at] = half;
  for (std::size_t i = 0; i < members.size(); ++i) {
    (i % 2 == 0 ? groups[at] : half).members.push_back(members[i]);
  }
  groups.push_back(std::move(half));
  return groups;
}

// Of each degree: the most loaded group halved, the least loaded one; the two most loaded groups
// merged, the most with the least loaded.
std::vector<std::vector<Group>> neighbours(const std::vector<Group>& groups, std::int32_t largest) {
  std::vector<std::vector<Group>> all;
  for (std::size_t begin = 0; begin < groups.size();) {
    std::size_t end = begin;
    while (end < groups.size() && groups[end].degree == groups[begin].degree) {
      ++end;
    }
    if (groups[begin].degree > 1) {
      all.push_back(halved(groups, begin));
      if (end - begin > 1) {
        all.push_back(halved(groups, end - 1));
      }
    }
    if (groups[begin].degree < largest && end - begin > 1) {
      all.push_back(merged(groups, begin, begin + 1));
      if (end - begin > 2) {
        all.push_back(merged(groups, begin, end - 1));
      }
    }
    begin = end;
  }
  return all;
}

}  // namespace

Grouping one_degree(const Problem& problem, std::int32_t degree) {
  Grouping grouping{.groups = level(problem.world, degree), .placed = {}, .quality = {}};
  for (const Placement& placement : static_degree(problem, degree).placements) {
    grouping.placed.push_back(placement.node);
  }
  return grouping;
}

Grouping improved(Assignment& state, const Grouping& start, std::int64_t work) {
  state.assign(start.placed);
  std::vector<Assignment::Id> ids;
  for (const Node& group : start.groups) {
    ids.push_back(state.id(group));
  }
  Random random(kSeed);
  group_search(state, ids, random, work);
  Grouping found{.groups = start.groups, .placed = {}, .quality = quality(state)};
  for (const Assignment::Id id : state.nodes()) {
    found.placed.push_back(state.node(id));
  }
  return found;
}

Grouping regroup(Assignment& state, Grouping start, int steps, std::int64_t work) {
  const std::int32_t largest = std::int32_t{1} << (state.levels() - 1);
  for (int step = 0; step < steps; ++step) {
    Grouping best = start;
    for (std::vector<Group>& groups : neighbours(groups_of(state, start), largest)) {
      Grouping other = improved(state, lay_out(std::move(groups), start.placed.size()), work);
      if (other.quality < best.quality) {
        best = std::move(other);
      }
    }
    if (!(best.quality < start.quality)) {
      break;
    }
    start = std::move(best);
  }
  return start;
}

}  // namespace nsp
