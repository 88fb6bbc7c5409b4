#include "nsp/planner/baselines/two_level.h"

#include <bit>
#include <utility>

#include "nsp/planner/assignment.h"
#include "nsp/planner/leaf_queue.h"
#include "nsp/planner/search_state.h"

namespace nsp {
namespace {

// The least-loaded tree that holds the sequence, else the one with the fewest tokens.
Node best_tree(const Problem& problem, const SearchState& state, const Sequence& sequence) {
  Node best;
  Node emptiest;
  bool found = false;
  for (const Node& tree : level(problem.world, problem.sp_max)) {
    const bool fits = state.fits(tree, sequence, problem.token_budget);
    if (fits && (!found || state.cost(tree) < state.cost(best))) {
      best = tree;
      found = true;
    }
    if (tree.first_rank == 0 || state.tokens(tree) < state.tokens(emptiest)) {
      emptiest = tree;
    }
  }
  return found ? best : emptiest;
}

std::vector<Node> split_at(CostTable& costs, std::size_t count) {
  const Problem& problem = costs.problem();
  const std::size_t top = costs.levels() - 1;
  SearchState state(problem.world, problem.sp_max);
  const auto on_tree = [&](std::size_t i) {
    const Sequence& sequence = problem.sequences[i];
    const Node tree = best_tree(problem, state, sequence);
    state.add(
        tree, sequence, state.active(tree) ? costs.share(i, top) : costs.opening_share(i, top));
  };
  for (std::size_t i = 0; i < count; ++i) {
    on_tree(i);
  }
  LeafQueue leaves(state, problem.world);
  for (std::size_t i = count; i < problem.sequences.size(); ++i) {
    const std::int64_t tokens = problem.sequences[i].tokens;
    const std::int32_t rank = leaves.place(tokens, costs.share(i, 0), problem.token_budget);
    state.nodes.push_back({.first_rank = rank, .degree = 1});
  }
  return std::move(state.nodes);
}

}  // namespace

std::vector<Node> two_level_nodes(CostTable& costs) {
  const std::vector<Sequence>& sequences = costs.problem().sequences;
  std::size_t forced = 0;
  while (forced < sequences.size() && sequences[forced].tokens > costs.problem().token_budget) {
    ++forced;
  }
  Assignment state(costs);
  std::vector<Node> best;
  Quality least;
  int idle = 0;
  std::size_t step = 1;
  for (std::size_t k = forced; k <= sequences.size() && idle < 4; k += step) {
    std::vector<Node> nodes = split_at(costs, k);
    state.assign(nodes);
    ++idle;
    if (best.empty() || quality(state) < least) {
      least = quality(state);
      best = std::move(nodes);
      idle = 0;
    }
    step = std::max<std::size_t>(1, std::bit_floor(k - forced) / 2);
  }
  return best;
}

Solution two_level(const Problem& problem) {
  CostTable costs(problem);
  return score(problem, two_level_nodes(costs));
}

}  // namespace nsp
