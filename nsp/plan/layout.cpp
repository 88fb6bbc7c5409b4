#include "nsp/plan/layout.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "nsp/base/error.h"

namespace nsp {
namespace {

void check_contiguous(Backend backend) {
  if (backend != Backend::kLocal && backend != Backend::kUlysses) {
    throw BadInput("backend: only local and ulysses have a layout so far; plan with these");
  }
}

Segment segment_of(const Placement& placement, std::int32_t index, std::int32_t rank) {
  const std::int64_t piece = rank - placement.node.first_rank;
  const std::int64_t degree = placement.node.degree;
  return {.sequence = placement.sequence,
          .begin = boundary(placement.tokens, placement.sequence, degree, piece),
          .end = boundary(placement.tokens, placement.sequence, degree, piece + 1),
          .degree = placement.node.degree,
          .backend = placement.backend,
          .placement = index};
}

}  // namespace

std::vector<std::int32_t> row_order(const Round& round) {
  std::vector<std::int32_t> order(round.placements.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int32_t index) {
    const Placement& p = round.placements[static_cast<std::size_t>(index)];
    return std::tuple(-p.node.degree, p.backend, -p.tokens, p.sequence);
  };
  std::ranges::stable_sort(order, {}, key);
  return order;
}

std::vector<Segment> rank_row(const Round& round, std::int32_t rank) {
  std::vector<Segment> row;
  for (const std::int32_t index : row_order(round)) {
    const Placement& placement = round.placements[static_cast<std::size_t>(index)];
    check_contiguous(placement.backend);
    if (!placement.node.contains(rank)) {
      continue;
    }
    const Segment segment = segment_of(placement, index, rank);
    if (segment.tokens() > 0) {
      row.push_back(segment);
    }
  }
  if (row.empty()) {
    row.push_back({.sequence = -1, .begin = 0, .end = 1, .placement = -1});
  }
  return row;
}

std::int64_t owned_tokens(const Placement& placement, std::int32_t rank) {
  check_contiguous(placement.backend);
  return segment_of(placement, 0, rank).tokens();
}

std::vector<std::int64_t> rank_tokens(const Round& round, std::int32_t world) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(world), 0);
  for (const Placement& placement : round.placements) {
    check_contiguous(placement.backend);
    for (std::int32_t i = 0; i < placement.node.degree; ++i) {
      const std::int32_t rank = placement.node.first_rank + i;
      tokens[static_cast<std::size_t>(rank)] += segment_of(placement, 0, rank).tokens();
    }
  }
  return tokens;
}

}  // namespace nsp
