// Algorithm 1 of arXiv 2609.22755: beam search over the longest sequences, greedy tail at the
// leaves.
//
// 1. The longest `prefix` sequences, and any others that no leaf could hold, are searched in
// decreasing
//    length: from each of `beam` states to every node that meets the token budget (and, if
//    monotone, has a degree not above the last one's). The states of smallest largest cost survive;
//    states that differ by a symmetry of the tree count once; ties go to the smaller degree, then
//    the lower first rank.
// 2. A beam that empties drops monotony for that sequence; if still nothing fits, the sequence goes
// to the
//    node with the smallest resulting token load and the result is infeasible.
// 3. The rest goes, longest first, to the least-loaded leaf that meets the budget, else to the leaf
// with
//    the fewest tokens. Where that breaks the budget, a second completion tries larger nodes for
//    what no leaf holds (the paper stops at the first).
// 4. Of the completed states the one of smallest load under the full cost model is returned.
//
// A beam judged by its largest cost alone spreads whatever it places, so a long prefix serves some
// batches badly (all of a short batch ends high in the tree). The paper gives no prefix length:
// with `sweep` the best state at each power of two below `prefix` is completed too, on the way, and
// the result is never worse for it.
#pragma once

#include <cstdint>

#include "nsp/planner/problem.h"

namespace nsp {

struct Algorithm1Options {
  std::int32_t prefix = 64;
  std::int32_t beam = 8;
  bool monotone = true;
  bool sweep = true;  // false: the paper's single prefix length
};

Solution algorithm1(const Problem& problem, const Algorithm1Options& options);

}  // namespace nsp
