#include "nsp/planner/search_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "nsp/base/random.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return Random(a + 0x632be59bd9b4e019U * b).next();
}

std::size_t log2(std::int32_t degree) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(degree)));
}

std::int64_t slice(const Sequence& sequence, std::int64_t degree, std::int64_t piece) {
  return boundary(sequence.tokens, sequence.index, degree, piece + 1) -
         boundary(sequence.tokens, sequence.index, degree, piece);
}

}  // namespace

SearchState::SearchState(std::int32_t world, std::int32_t sp_max)
    : world_(world), sp_max_(sp_max), top_(log2(sp_max)) {
  std::size_t size = 0;
  for (std::size_t level = 0; level <= top_; ++level) {
    offset_.push_back(size);
    size += static_cast<std::size_t>(world) >> level;
  }
  cost_.assign(size, 0);
  tokens_.assign(size, 0);
  active_.assign(size, 0);
  canon_.assign(size, 0);
  for (std::size_t level = 0; level <= top_; ++level) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(world) >> level; ++i) {
      refresh(level, i);
    }
  }
}

std::size_t SearchState::at(const Node& node) const {
  const std::size_t level = log2(node.degree);
  return offset_[level] + (static_cast<std::size_t>(node.first_rank) >> level);
}

std::int64_t SearchState::cost_max() const {
  return *std::max_element(cost_.begin() + static_cast<std::ptrdiff_t>(offset_[top_]), cost_.end());
}

// The largest slice is tested on the fullest rank first; only when that is too much, and the
// smallest slice would not be, every rank's own slice is.
bool SearchState::fits(const Node& node, const Sequence& sequence, std::int64_t budget) const {
  const std::int64_t room = budget - tokens(node);
  const std::int64_t smallest = sequence.tokens / node.degree;
  if (room < smallest) {
    return false;
  }
  if (smallest + (sequence.tokens % node.degree != 0) <= room) {
    return true;
  }
  for (std::int32_t i = 0; i < node.degree; ++i) {
    const auto rank = static_cast<std::size_t>(node.first_rank) + static_cast<std::size_t>(i);
    if (tokens_[rank] + slice(sequence, node.degree, i) > budget) {
      return false;
    }
  }
  return true;
}

void SearchState::add(const Node& node, const Sequence& sequence, std::int64_t cost) {
  active_[at(node)] = 1;
  const std::size_t level = log2(node.degree);
  for (std::int32_t i = 0; i < node.degree; ++i) {
    const auto rank = static_cast<std::size_t>(node.first_rank) + static_cast<std::size_t>(i);
    cost_[rank] += cost;
    tokens_[rank] += slice(sequence, node.degree, i);
  }
  for (std::size_t l = 0; l <= top_; ++l) {
    const std::size_t first = static_cast<std::size_t>(node.first_rank) >> l;
    const std::size_t count = l < level ? std::size_t{1} << (level - l) : 1;
    for (std::size_t i = first; i < first + count; ++i) {
      refresh(l, i);
    }
  }
  nodes.push_back(node);
  last_degree = node.degree;
}

void SearchState::refresh(std::size_t level, std::size_t index) {
  const std::size_t self = offset_[level] + index;
  if (level == 0) {
    canon_[self] =
        mix(mix(static_cast<std::uint64_t>(cost_[self]), static_cast<std::uint64_t>(tokens_[self])),
            active_[self]);
    return;
  }
  const std::size_t left = offset_[level - 1] + 2 * index;
  const std::size_t right = left + 1;
  cost_[self] = std::max(cost_[left], cost_[right]);
  tokens_[self] = std::max(tokens_[left], tokens_[right]);
  const auto [low, high] = std::minmax(canon_[left], canon_[right]);
  canon_[self] = mix(mix(low, high), active_[self] + 2U);
}

void SearchState::distinct_nodes(std::int32_t degree, std::vector<Node>& out) const {
  out.clear();
  std::vector<std::pair<std::uint64_t, std::size_t>> roots(trees());
  for (std::size_t tree = 0; tree < roots.size(); ++tree) {
    roots[tree] = {canon_[offset_[top_] + tree], tree};
  }
  std::ranges::sort(roots);  // the first of equals has the lowest number
  const auto equals = std::ranges::unique(roots, {}, [](const auto& root) { return root.first; });
  roots.erase(equals.begin(), equals.end());
  std::ranges::sort(roots, {}, [](const auto& root) { return root.second; });
  for (const auto& [canon, tree] : roots) {
    visit(top_, tree, log2(degree), out);
  }
}

// Two siblings of equal subtrees are interchangeable: only the left one is entered.
void SearchState::visit(std::size_t level,
                        std::size_t index,
                        std::size_t wanted,
                        std::vector<Node>& out) const {
  if (level == wanted) {
    out.push_back({.first_rank = static_cast<std::int32_t>(index << level),
                   .degree = std::int32_t{1} << level});
    return;
  }
  const std::size_t left = 2 * index;
  visit(level - 1, left, wanted, out);
  if (canon_[offset_[level - 1] + left] != canon_[offset_[level - 1] + left + 1]) {
    visit(level - 1, left + 1, wanted, out);
  }
}

std::uint64_t SearchState::signature() const {
  std::vector<std::uint64_t> roots(canon_.begin() + static_cast<std::ptrdiff_t>(offset_[top_]),
                                   canon_.end());
  std::ranges::sort(roots);
  auto hash = static_cast<std::uint64_t>(last_degree);
  for (const std::uint64_t root : roots) {
    hash = mix(hash, root);
  }
  return hash;
}

}  // namespace nsp
