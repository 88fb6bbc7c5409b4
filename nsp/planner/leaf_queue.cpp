#include "nsp/planner/leaf_queue.h"

#include <algorithm>
#include <utility>

namespace nsp {

LeafQueue::LeafQueue(const SearchState& state, std::int32_t world) {
  for (const Node& leaf : level(world, 1)) {
    heap_.push_back(
        {.cost = state.cost(leaf), .tokens = state.tokens(leaf), .rank = leaf.first_rank});
  }
  std::ranges::make_heap(heap_, std::less<>{});
}

bool LeafQueue::holds(std::int64_t tokens, std::int64_t budget) const {
  return std::ranges::any_of(heap_,
                             [&](const Leaf& leaf) { return leaf.tokens + tokens <= budget; });
}

std::int32_t LeafQueue::take(Leaf leaf, std::int64_t tokens, std::int64_t cost) {
  leaf.tokens += tokens;
  leaf.cost += cost;
  passed_.push_back(leaf);
  for (const Leaf& back : passed_) {
    heap_.push_back(back);
    std::ranges::push_heap(heap_, std::less<>{});
  }
  passed_.clear();
  return leaf.rank;
}

std::int32_t LeafQueue::place(std::int64_t tokens, std::int64_t cost, std::int64_t budget) {
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, std::less<>{});
    const Leaf leaf = heap_.back();
    heap_.pop_back();
    if (leaf.tokens + tokens <= budget) {
      return take(leaf, tokens, cost);
    }
    passed_.push_back(leaf);
  }
  const auto emptiest = std::ranges::min_element(
      passed_, {}, [](const Leaf& leaf) { return std::pair(leaf.tokens, leaf.rank); });
  const Leaf leaf = *emptiest;
  passed_.erase(emptiest);
  return take(leaf, tokens, cost);
}

}  // namespace nsp
