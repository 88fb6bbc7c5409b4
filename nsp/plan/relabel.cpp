#include "nsp/plan/relabel.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "nsp/base/error.h"

namespace nsp {
namespace {

using Groups = std::vector<std::vector<std::int32_t>>;

std::string group_name(std::size_t group) {
  return "groups[" + std::to_string(group) + "]";
}

void check_group(std::int32_t world, const Groups& groups, std::size_t g) {
  const std::vector<std::int32_t>& group = groups[g];
  if (!std::has_single_bit(group.size())) {
    bad_input(group_name(g),
              std::to_string(group.size()) + " workers",
              "a group's size must be a power of two");
  }
  for (const std::int32_t worker : group) {
    if (worker < 0 || worker >= world) {
      bad_input(group_name(g), worker, "workers are 0 to " + std::to_string(world - 1));
    }
    if (std::ranges::count(group, worker) > 1) {
      bad_input(group_name(g), worker, "a worker may be in a group once");
    }
  }
}

// A set of the family, or the whole world.
struct Set {
  std::int32_t size = 0;
  std::int32_t next = 0;  // first rank of its block that is still free
};

class Relabeller {
 public:
  Relabeller(std::int32_t world, const Groups& groups)
      : groups_(groups), sets_{{.size = world}}, inside_(static_cast<std::size_t>(world), 0) {}

  Relabelling run();

 private:
  void place(std::size_t group, Node& node);

  const Groups& groups_;
  std::vector<Set> sets_;
  std::vector<std::size_t> inside_;  // by worker: the smallest set so far that holds it
};

// Larger groups came before, so a group is laminar with them if one set holds all of its workers.
void Relabeller::place(std::size_t g, Node& node) {
  const std::vector<std::int32_t>& group = groups_[g];
  const auto set_of = [&](std::int32_t worker) {
    return inside_[static_cast<std::size_t>(worker)];
  };
  const std::size_t outer = set_of(group.front());
  for (const std::int32_t worker : group) {
    if (set_of(worker) != outer) {
      bad_input(group_name(g),
                "workers " + std::to_string(group.front()) + " and " + std::to_string(worker),
                "another group holds one of them but not both: groups must be nested or disjoint");
    }
  }
  const auto size = static_cast<std::int32_t>(group.size());
  node.degree = size;
  if (sets_[outer].size == size && outer != 0) {  // the same group again
    node.first_rank = sets_[outer].next;
    return;
  }
  node.first_rank = sets_[outer].next;
  sets_[outer].next += size;
  for (const std::int32_t worker : group) {
    inside_[static_cast<std::size_t>(worker)] = sets_.size();
  }
  sets_.push_back({.size = size, .next = node.first_rank});
}

Relabelling Relabeller::run() {
  Relabelling result{.rank_of = std::vector<std::int32_t>(inside_.size()),
                     .nodes = std::vector<Node>(groups_.size())};
  std::vector<std::size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return groups_[a].size() > groups_[b].size(); });
  for (const std::size_t g : order) {
    place(g, result.nodes[g]);
  }
  for (std::size_t worker = 0; worker < inside_.size(); ++worker) {
    result.rank_of[worker] = sets_[inside_[worker]].next++;
  }
  return result;
}

}  // namespace

Relabelling relabel(std::int32_t world, const Groups& groups) {
  if (world < 1 || world > kMaxWorld) {
    bad_input("world", world, "must be from 1 to " + std::to_string(kMaxWorld));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    check_group(world, groups, g);
  }
  return Relabeller(world, groups).run();
}

}  // namespace nsp
