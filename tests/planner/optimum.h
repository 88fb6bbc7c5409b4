// Exhaustive search made fast: depth first over the sequences with everything proven skipped.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "nsp/planner/assignment.h"
#include "nsp/planner/problem.h"

namespace nsp {

// The least load of all assignments of one round that keep the budget. A partial assignment's load
// never shrinks, so branches that reach the best are left. Of two sibling subtrees without a
// sequence only the left one is tried: lengths must be multiples of the world, so that mirrored
// plans have equal loads (no remainders).
class Optimum {
 public:
  explicit Optimum(const Problem& problem) : problem_(problem), costs_(problem), state_(costs_) {}

  // The least load below `most`, or `most` if there is none.
  std::int64_t below(std::int64_t most) {
    best_ = most;
    place(0);
    return best_;
  }

 private:
  bool empty_below(const Node& node) const {
    for (const Node& used : used_) {
      if (node.contains(used.first_rank) && used.degree <= node.degree) {
        return false;
      }
    }
    return true;
  }

  bool mirrored(const Node& node) const {
    for (std::int32_t degree = node.degree; degree < problem_.world; degree *= 2) {
      const Node at = node_of(node.first_rank, degree);
      const bool right =
          degree < problem_.sp_max ? at.first_rank % (2 * degree) != 0 : at.first_rank != 0;
      if (right && empty_below({.first_rank = at.first_rank - degree, .degree = degree})) {
        return true;
      }
      if (degree >= problem_.sp_max) {
        break;
      }
    }
    return false;
  }

  void place(std::size_t sequence) {
    if (state_.excess() > 0 || state_.largest().sum() >= best_) {
      return;
    }
    if (sequence == problem_.sequences.size()) {
      best_ = state_.largest().sum();
      return;
    }
    for (const std::int32_t degree : problem_.model->allowed_degrees(problem_.sp_max)) {
      for (const Node& node : level(problem_.world, degree)) {
        if (mirrored(node)) {
          continue;
        }
        state_.place(sequence, state_.id(node));
        used_.push_back(node);
        place(sequence + 1);
        used_.pop_back();
        state_.remove(sequence);
      }
    }
  }

  const Problem& problem_;
  CostTable costs_;
  Assignment state_;
  std::vector<Node> used_;
  std::int64_t best_ = 0;
};

// The least sum of loads over all ways to deal the sequences to rounds, INT64_MAX if none keeps the
// budget. parts[m]: the optimum of the sequences in the bits of m as one round.
inline std::int64_t optimum_over_rounds(const Problem& problem) {
  const std::size_t all = (std::size_t{1} << problem.sequences.size()) - 1;
  std::vector<std::int64_t> parts(all + 1, 0);
  std::vector<std::int64_t> least(all + 1, 0);
  for (std::size_t mask = 1; mask <= all; ++mask) {
    Problem part = problem;
    part.sequences.clear();
    for (std::size_t i = 0; i < problem.sequences.size(); ++i) {
      if ((mask >> i & 1U) != 0) {
        part.sequences.push_back(problem.sequences[i]);
      }
    }
    parts[mask] = Optimum(part).below(INT64_MAX);
    least[mask] = parts[mask];
    const std::size_t lowest = mask & (~mask + 1);
    for (std::size_t one = (mask - 1) & mask; one > 0; one = (one - 1) & mask) {
      if ((one & lowest) != 0 && parts[one] < INT64_MAX && least[mask ^ one] < INT64_MAX) {
        least[mask] = std::min(least[mask], parts[one] + least[mask ^ one]);
      }
    }
  }
  return least[all];
}

}  // namespace nsp
