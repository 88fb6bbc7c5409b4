#include "nsp/planner/algorithm1.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>
#include <vector>

#include "nsp/planner/leaf_queue.h"
#include "nsp/planner/search_state.h"

namespace nsp {
namespace {

// A state extended by one sequence, not yet built.
struct Extension {
  std::int64_t cost_max = 0;
  Node node;
  std::size_t parent = 0;
  std::int64_t cost = 0;  // that the sequence adds to the node's ranks

  std::tuple<std::int64_t, std::int32_t, std::int32_t, std::size_t> key() const {
    return {cost_max, node.degree, node.first_rank, parent};
  }
};

// Heaps give their largest first: the best must be the largest.
bool worse(const Extension& a, const Extension& b) {
  return b.key() < a.key();
}

class Search {
 public:
  Search(const Problem& problem, const Algorithm1Options& options)
      : problem_(problem),
        options_(options),
        degrees_(problem.model->allowed_degrees(problem.sp_max)),
        beam_{SearchState(problem.world, problem.sp_max)} {}

  void place(const Sequence& sequence);
  std::vector<SearchState>& beam() { return beam_; }

 private:
  std::vector<Extension> extensions(const Sequence& sequence, bool monotone);
  void keep_best(const Sequence& sequence, std::vector<Extension> heap);
  void force(const Sequence& sequence);

  const Problem& problem_;
  const Algorithm1Options& options_;
  std::vector<std::int32_t> degrees_;
  std::vector<SearchState> beam_;
  std::vector<Node> nodes_;  // scratch
};

std::vector<Extension> Search::extensions(const Sequence& sequence, bool monotone) {
  std::vector<Extension> result;
  for (const std::int32_t degree : degrees_) {
    const std::int64_t later = share(*problem_.model, sequence.tokens, degree);
    const std::int64_t opening = opening_share(*problem_.model, sequence.tokens, degree);
    for (std::size_t parent = 0; parent < beam_.size(); ++parent) {
      const SearchState& state = beam_[parent];
      if (monotone && !state.nodes.empty() && degree > state.last_degree) {
        continue;
      }
      const std::int64_t floor = state.cost_max();
      state.distinct_nodes(degree, nodes_);
      for (const Node& node : nodes_) {
        if (state.fits(node, sequence, problem_.token_budget)) {
          const std::int64_t cost = state.active(node) ? later : opening;
          result.push_back({std::max(floor, state.cost(node) + cost), node, parent, cost});
        }
      }
    }
  }
  return result;
}

void Search::keep_best(const Sequence& sequence, std::vector<Extension> heap) {
  std::vector<SearchState> next;
  std::vector<std::uint64_t> seen;
  std::ranges::make_heap(heap, worse);
  while (!heap.empty() && std::ssize(next) < options_.beam) {
    std::ranges::pop_heap(heap, worse);
    const Extension best = heap.back();
    heap.pop_back();
    next.push_back(beam_[best.parent]);
    next.back().add(best.node, sequence, best.cost);
    const std::uint64_t signature = next.back().signature();
    if (std::ranges::find(seen, signature) != seen.end()) {
      next.pop_back();
    } else {
      seen.push_back(signature);
    }
  }
  beam_ = std::move(next);
}

// Nothing fits: of all states and nodes the smallest resulting token load.
void Search::force(const Sequence& sequence) {
  std::vector<Extension> all;
  for (const std::int32_t degree : degrees_) {
    const std::int64_t slice = (sequence.tokens + degree - 1) / degree;
    const std::int64_t cost = opening_share(*problem_.model, sequence.tokens, degree);
    for (std::size_t parent = 0; parent < beam_.size(); ++parent) {
      beam_[parent].distinct_nodes(degree, nodes_);
      for (const Node& node : nodes_) {
        all.push_back({beam_[parent].tokens(node) + slice, node, parent, cost});
      }
    }
  }
  keep_best(sequence, {*std::ranges::max_element(all, worse)});
}

void Search::place(const Sequence& sequence) {
  std::vector<Extension> found = extensions(sequence, options_.monotone);
  if (found.empty() && options_.monotone) {
    found = extensions(sequence, false);
  }
  if (found.empty()) {
    force(sequence);
  } else {
    keep_best(sequence, std::move(found));
  }
}

// The smallest degree with a node that fits; of its nodes the one with the fewest tokens.
bool place_above_leaves(const Problem& problem, SearchState& state, const Sequence& sequence) {
  for (const std::int32_t degree : problem.model->allowed_degrees(problem.sp_max)) {
    const Node* best = nullptr;
    const std::vector<Node> nodes = level(problem.world, degree);
    for (const Node& node : nodes) {
      const bool fits = degree > 1 && state.fits(node, sequence, problem.token_budget);
      if (fits && (best == nullptr || state.tokens(node) < state.tokens(*best))) {
        best = &node;
      }
    }
    if (best != nullptr) {
      state.add(*best, sequence, opening_share(*problem.model, sequence.tokens, degree));
      return true;
    }
  }
  return false;
}

// The greedy tail. `climb`: what no leaf holds may go to a larger node.
std::vector<Node> complete(const Problem& problem,
                           const SearchState& start,
                           const std::vector<std::int64_t>& leaf_costs,
                           bool climb) {
  LeafQueue leaves(start, problem.world);
  SearchState state = start;
  for (std::size_t i = start.nodes.size(); i < problem.sequences.size(); ++i) {
    const Sequence& sequence = problem.sequences[i];
    if (climb && !leaves.holds(sequence.tokens, problem.token_budget) &&
        place_above_leaves(problem, state, sequence)) {
      leaves = LeafQueue(state, problem.world);
      continue;
    }
    const Node leaf{
        .first_rank = leaves.place(sequence.tokens, leaf_costs[i], problem.token_budget),
        .degree = 1};
    if (climb) {
      state.add(leaf, sequence, leaf_costs[i]);
    } else {
      state.nodes.push_back(leaf);
    }
  }
  return std::move(state.nodes);
}

// How many sequences the beam places: at least those that no leaf could hold.
std::size_t prefix_size(const Problem& problem, std::int32_t prefix) {
  std::size_t size = std::min(problem.sequences.size(), static_cast<std::size_t>(prefix));
  while (size < problem.sequences.size() && problem.sequences[size].tokens > problem.token_budget) {
    ++size;
  }
  return size;
}

}  // namespace

Solution algorithm1(const Problem& problem, const Algorithm1Options& options) {
  Search search(problem, options);
  const std::size_t prefix = prefix_size(problem, options.prefix);
  const std::size_t forced = prefix_size(problem, 0);
  std::vector<std::int64_t> leaf_costs;
  for (const Sequence& sequence : problem.sequences) {
    leaf_costs.push_back(share(*problem.model, sequence.tokens, 1));
  }
  Solution best;
  const auto finish = [&](const SearchState& state, bool climb) {
    Solution solution = score(problem, complete(problem, state, leaf_costs, climb));
    if (best.placements.empty() || better(solution, best)) {
      best = std::move(solution);
    }
  };
  for (std::size_t i = 0; i < prefix; ++i) {
    if (options.sweep && i >= forced && (i == forced || std::has_single_bit(i))) {
      finish(search.beam().front(), false);
    }
    search.place(problem.sequences[i]);
  }
  for (const bool climb : {false, true}) {
    for (const SearchState& state : search.beam()) {
      finish(state, climb);
    }
    if (best.feasible) {
      break;
    }
  }
  return best;
}

}  // namespace nsp
