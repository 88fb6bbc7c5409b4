#include "nsp/planner/local_search.h"

#include <vector>

#include "nsp/planner/annealing.h"

namespace nsp {
namespace {

using Id = Assignment::Id;

// Heat: the square of 0.15 % of a load, one rank's.
constexpr Cooling kCooling = {.stages = 64, .heat = 10000, .part = 8, .strict = 32};
constexpr std::size_t kFew = 4;  // sequences of a node that a trial may empty

class LocalSearch {
 public:
  LocalSearch(Assignment& state, Random& random) : state_(state), trial_(state, random) {}

  void run(std::int64_t work) {
    anneal_to_mean(state_, trial_, kCooling, work, [this] { propose(); });
  }

 private:
  std::size_t pick_rank();
  std::size_t pick_sequence();
  Id pick_node(std::size_t level);
  std::size_t pick_level(std::size_t near);
  void propose();
  void empty_node(Id node);
  void split_node(Id node);

  Assignment& state_;
  Trial trial_;
};

// The highest of eight random ranks.
std::size_t LocalSearch::pick_rank() {
  std::size_t best = trial_.below(state_.world());
  for (int i = 0; i < 7; ++i) {
    const std::size_t other = trial_.below(state_.world());
    best = state_.penalty(other) > state_.penalty(best) ? other : best;
  }
  return best;
}

// Of the active nodes on a high rank's path one, of its sequences one.
std::size_t LocalSearch::pick_sequence() {
  const std::size_t rank = pick_rank();
  const std::vector<std::uint32_t>* chosen = nullptr;
  std::size_t active = 0;
  for (std::size_t w = 0; w < state_.ways(); ++w) {
    const auto& members = state_.members(state_.node_of_rank(rank, w));
    if (!members.empty() && trial_.below(++active) == 0) {
      chosen = &members;
    }
  }
  return chosen == nullptr ? trial_.below(state_.nodes().size())
                           : (*chosen)[trial_.below(chosen->size())];
}

// The least loaded of three random nodes.
Id LocalSearch::pick_node(std::size_t level) {
  const std::size_t way = trial_.way_at(level);
  Id best = trial_.node_of(way);
  for (int i = 0; i < 2; ++i) {
    const Id other = trial_.node_of(way);
    best = state_.node_load(other) < state_.node_load(best) ? other : best;
  }
  return best;
}

// Half the time the same, else one up, one down or any.
std::size_t LocalSearch::pick_level(std::size_t near) {
  const std::size_t roll = trial_.below(8);
  if (roll < 2) {
    return near + 1 < state_.levels() ? near + 1 : near;
  }
  if (roll == 2) {
    return near > 0 ? near - 1 : near;
  }
  return roll == 3 ? trial_.below(state_.levels()) : near;
}

// Its sequences in turn to the two halves of its ranks.
void LocalSearch::split_node(Id node) {
  const std::vector<std::uint32_t> members = state_.members(node);
  const std::size_t way = trial_.way_at(state_.level(node) - 1);
  const Node whole = state_.node(node);
  std::size_t half = trial_.below(2);
  for (const std::uint32_t member : members) {
    const auto offset = half * static_cast<std::size_t>(whole.degree / 2);
    const auto rank = static_cast<std::size_t>(whole.first_rank) + offset;
    trial_.move(member, state_.node_of_rank(rank, way));
    half = 1 - half;
  }
}

// Half the time, where there is a choice, to another way on the same ranks.
void LocalSearch::empty_node(Id node) {
  const std::size_t level = state_.level(node);
  if (level > 0 && trial_.below(4) == 0) {
    split_node(node);
    return;
  }
  const std::vector<std::uint32_t> members = state_.members(node);
  const bool stay = state_.ways_at(level).size() > 1 && trial_.below(2) == 0;
  const auto rank = static_cast<std::size_t>(state_.node(node).first_rank);
  const Id to =
      stay ? state_.node_of_rank(rank, trial_.way_at(level)) : pick_node(pick_level(level));
  for (const std::uint32_t member : members) {
    trial_.move(member, to);
  }
}

void LocalSearch::propose() {
  const std::size_t sequence = pick_sequence();
  const Id from = state_.nodes()[sequence];
  const std::size_t kind = trial_.below(8);
  if (kind == 0 && state_.members(from).size() <= kFew) {
    empty_node(from);
    return;
  }
  const Id to = pick_node(pick_level(state_.level(from)));
  const auto& members = state_.members(to);
  if (kind < 4 && !members.empty()) {
    trial_.move(members[trial_.below(members.size())], from);
  }
  trial_.move(sequence, to);
}

}  // namespace

void local_search(Assignment& state, Random& random, std::int64_t work) {
  if (!state.nodes().empty()) {
    LocalSearch(state, random).run(work);
  }
}

}  // namespace nsp
