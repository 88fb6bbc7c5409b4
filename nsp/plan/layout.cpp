#include "nsp/plan/layout.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "nsp/plan/wave.h"
#include "nsp/plan/way.h"

namespace nsp {
namespace {

// The lower or the upper of the two pieces of the i-th rank: of 2r pieces that of its ring index,
// of that the part of its inner rank.
Segment zigzag_piece(const Placement& placement, std::int64_t i, bool upper) {
  const std::int64_t pieces = 2 * std::int64_t{ring_size(way_of(placement))};
  const std::int64_t index = i / placement.ulysses_degree;
  const std::int64_t piece = upper ? pieces - 1 - index : index;
  const std::int64_t begin = boundary(placement.tokens, placement.sequence, pieces, piece);
  const std::int64_t end = boundary(placement.tokens, placement.sequence, pieces, piece + 1);
  const auto cut = [&](std::int64_t at) {
    return begin + boundary(end - begin, placement.sequence, placement.ulysses_degree, at);
  };
  const std::int64_t inner = i % placement.ulysses_degree;
  return {.sequence = placement.sequence,
          .begin = cut(inner),
          .end = cut(inner + 1),
          .degree = placement.node.degree,
          .backend = placement.backend};
}

Segment slice_of(const Placement& placement, std::int64_t i) {
  const std::int64_t degree = placement.node.degree;
  return {.sequence = placement.sequence,
          .begin = boundary(placement.tokens, placement.sequence, degree, i),
          .end = boundary(placement.tokens, placement.sequence, degree, i + 1),
          .degree = placement.node.degree,
          .backend = placement.backend};
}

bool contiguous(Backend backend) {
  return backend == Backend::kLocal || backend == Backend::kUlysses;
}

}  // namespace

std::vector<Segment> pieces_of(const Placement& placement, std::int32_t i) {
  if (contiguous(placement.backend)) {
    return {slice_of(placement, i)};
  }
  return {zigzag_piece(placement, i, false), zigzag_piece(placement, i, true)};
}

// By shifts where a node cuts a sequence in one piece a rank: planners count tokens all the time.
std::int64_t tokens_of(const Placement& placement, std::int32_t i) {
  if (contiguous(placement.backend)) {
    const auto degree = static_cast<std::uint32_t>(placement.node.degree);
    if (!std::has_single_bit(degree)) {
      return slice_of(placement, i).tokens();
    }
    const int level = std::countr_zero(degree);
    const std::int64_t offset = placement.sequence & (placement.node.degree - 1);
    return (((i + std::int64_t{1}) * placement.tokens + offset) >> level) -
           ((i * placement.tokens + offset) >> level);
  }
  return zigzag_piece(placement, i, false).tokens() + zigzag_piece(placement, i, true).tokens();
}

std::vector<std::int32_t> row_order(const Round& round) {
  std::vector<std::int32_t> order(round.placements.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int32_t index) {
    const Placement& p = round.placements[static_cast<std::size_t>(index)];
    const Wave wave = wave_of(p, round.schedule.cuts);
    return std::tuple(
        -p.node.degree, p.backend, wave, -static_cast<int>(p.mark), -p.tokens, p.sequence);
  };
  std::ranges::stable_sort(order, {}, key);
  return order;
}

std::vector<bool> runs_first(const Round& round) {
  std::vector<bool> first(round.placements.size(), false);
  std::vector<std::int32_t> left = round.schedule.leaf_first;
  if (std::ranges::all_of(left, [](std::int32_t count) { return count == 0; })) {
    return first;
  }
  for (const std::int32_t index : row_order(round)) {
    const Node& node = round.placements[static_cast<std::size_t>(index)].node;
    if (node.degree == 1 && left[static_cast<std::size_t>(node.first_rank)] > 0) {
      --left[static_cast<std::size_t>(node.first_rank)];
      first[static_cast<std::size_t>(index)] = true;
    }
  }
  return first;
}

std::vector<Segment> rank_row(const Round& round, std::int32_t rank) {
  std::vector<Segment> row;
  for (const std::int32_t index : row_order(round)) {
    const Placement& placement = round.placements[static_cast<std::size_t>(index)];
    if (!placement.node.contains(rank)) {
      continue;
    }
    for (Segment segment : pieces_of(placement, rank - placement.node.first_rank)) {
      if (segment.tokens() > 0) {
        segment.placement = index;
        row.push_back(segment);
      }
    }
  }
  if (row.empty()) {
    row.push_back({.sequence = -1, .begin = 0, .end = 1, .placement = -1});
  }
  return row;
}

std::int64_t owned_tokens(const Placement& placement, std::int32_t rank) {
  return tokens_of(placement, rank - placement.node.first_rank);
}

std::vector<std::int64_t> rank_tokens(const Round& round, std::int32_t world) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(world), 0);
  for (const Placement& placement : round.placements) {
    for (std::int32_t i = 0; i < placement.node.degree; ++i) {
      tokens[static_cast<std::size_t>(placement.node.first_rank + i)] += tokens_of(placement, i);
    }
  }
  return tokens;
}

}  // namespace nsp
