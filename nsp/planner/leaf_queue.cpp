#include "nsp/planner/leaf_queue.h"

#include <algorithm>
#include <utility>

namespace nsp {

namespace {

// Heaps give their largest first: the wanted leaf must be the largest.
constexpr auto kLeastCost = [](const auto& a, const auto& b) {
  return std::pair(b.cost, b.rank) < std::pair(a.cost, a.rank);
};
constexpr auto kFewestTokens = [](const auto& a, const auto& b) {
  return std::pair(b.tokens, b.rank) < std::pair(a.tokens, a.rank);
};

template <typename Leaf, typename Order>
void push(std::vector<Leaf>& heap, const Leaf& leaf, Order order) {
  heap.push_back(leaf);
  std::ranges::push_heap(heap, order);
}

template <typename Leaf, typename Order>
Leaf pop(std::vector<Leaf>& heap, Order order) {
  std::ranges::pop_heap(heap, order);
  const Leaf leaf = heap.back();
  heap.pop_back();
  return leaf;
}

}  // namespace

LeafQueue::LeafQueue(const SearchState& state, std::int32_t world) {
  for (const Node& leaf : level(world, 1)) {
    open_.push_back(
        {.cost = state.cost(leaf), .tokens = state.tokens(leaf), .rank = leaf.first_rank});
  }
  std::ranges::make_heap(open_, kLeastCost);
}

bool LeafQueue::holds(std::int64_t tokens, std::int64_t budget) const {
  const auto fits = [&](const Leaf& leaf) { return leaf.tokens + tokens <= budget; };
  return (!full_.empty() && fits(full_.front())) || std::ranges::any_of(open_, fits);
}

// A leaf that does not hold the sequence waits by its tokens until a sequence comes that it holds.
std::int32_t LeafQueue::place(std::int64_t tokens, std::int64_t cost, std::int64_t budget) {
  while (!full_.empty() && full_.front().tokens + tokens <= budget) {
    push(open_, pop(full_, kFewestTokens), kLeastCost);
  }
  while (!open_.empty() && open_.front().tokens + tokens > budget) {
    push(full_, pop(open_, kLeastCost), kFewestTokens);
  }
  return take(tokens, cost);
}

std::int32_t LeafQueue::take(std::int64_t tokens, std::int64_t cost) {
  const bool fits = !open_.empty();
  Leaf leaf = fits ? pop(open_, kLeastCost) : pop(full_, kFewestTokens);
  leaf.tokens += tokens;
  leaf.cost += cost;
  if (fits) {
    push(open_, leaf, kLeastCost);
  } else {
    push(full_, leaf, kFewestTokens);
  }
  return leaf.rank;
}

}  // namespace nsp
