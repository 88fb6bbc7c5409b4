#include "nsp/exec/block.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "nsp/plan/layout.h"
#include "nsp/plan/wave.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// Placements that share a block on a node: one way and wave.
struct Key {
  const Round& round;
  Way way;
  Wave wave = Wave::kLong;

  // By (level, backend, wave), in row order.
  auto place() const { return std::tuple(-way.degree, way.backend, wave); }
  auto place(const Placement& p) const {
    return std::tuple(-p.node.degree, p.backend, wave_of(p, round.schedule.cuts));
  }
};

std::int64_t rows_before(const std::vector<Segment>& row, const Key& key) {
  std::int64_t rows = 0;
  for (const Segment& segment : row) {
    const bool before =
        !segment.dummy() &&
        key.place(key.round.placements[static_cast<std::size_t>(segment.placement)]) < key.place();
    rows += before ? segment.tokens() : 0;
  }
  return rows;
}

// In row order.
std::vector<Placement> placements_of(const Key& key,
                                     const std::vector<std::int32_t>& order,
                                     const Node& node) {
  std::vector<Placement> placements;
  for (const std::int32_t index : order) {
    const Placement& placement = key.round.placements[static_cast<std::size_t>(index)];
    if (placement.node == node && key.place(placement) == key.place()) {
      placements.push_back(placement);
    }
  }
  return placements;
}

// Tokens of each of the pieces that the ranks [begin, begin + count) of the node hold, for each
// piece of a rank in turn: one for ulysses, the lower and the upper one for the others.
std::vector<Counts> rank_pieces(const std::vector<Placement>& placements,
                                std::int32_t begin,
                                std::int32_t count) {
  std::vector<Counts> pieces;
  for (const Placement& placement : placements) {
    const std::size_t first = pieces.size();
    for (std::int32_t i = begin; i < begin + count; ++i) {
      const std::vector<Segment> held = pieces_of(placement, i);
      pieces.resize(first + held.size());
      for (std::size_t piece = 0; piece < held.size(); ++piece) {
        pieces[first + piece].push_back(held[piece].tokens());
      }
    }
  }
  return pieces;
}

ZigzagPieces zigzag_pieces(const std::vector<Placement>& placements, std::int32_t ring) {
  ZigzagPieces pieces{.ring = ring};
  const std::int64_t count = 2 * std::int64_t{ring};
  for (const Placement& p : placements) {
    Counts& tokens = pieces.tokens.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      tokens.push_back(boundary(p.tokens, p.sequence, count, i + 1) -
                       boundary(p.tokens, p.sequence, count, i));
    }
  }
  return pieces;
}

void count_rows(const std::vector<Counts>& pieces, Block& block) {
  block.rank_tokens.assign(static_cast<std::size_t>(block.inner), 0);
  for (const Counts& piece : pieces) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      block.rank_tokens[i] += piece[i];
    }
  }
}

// Received rows lie by source, then by sequence. Walks them by sequence, then by source.
void order_rows(const std::vector<Counts>& pieces, Block& block) {
  Counts next(block.rank_tokens.size(), 0);  // next unread row of each source
  std::exclusive_scan(
      block.rank_tokens.begin(), block.rank_tokens.end(), next.begin(), std::int64_t{0});
  for (const Counts& piece : pieces) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      for (std::int64_t row = 0; row < piece[i]; ++row) {
        block.to_sequences.push_back(next[i]++);
      }
    }
  }
}

LevelRows level_rows(const Key& key, const std::vector<std::int32_t>& order) {
  const Way& way = key.way;
  std::set<std::int32_t> firsts;
  for (const Placement& placement : key.round.placements) {
    if (way_of(placement) == way) {
      firsts.insert(placement.node.first_rank);
    }
  }
  LevelRows level;
  for (const std::int32_t first : firsts) {
    Block block{.degree = way.degree, .inner = way.degree};
    const Node node{first, way.degree};
    count_rows(rank_pieces(placements_of(key, order, node), 0, way.degree), block);
    const Counts& rows = block.rank_tokens;
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    level.most = std::max(level.most, std::ranges::max(rows));
    level.most_elsewhere = std::max(level.most_elsewhere, all - std::ranges::min(rows));
  }
  return level;
}

Block make_leaf(const Round& round, const std::vector<Segment>& row, std::int32_t rank) {
  const Key key{.round = round, .way = head_split(1)};
  Block block{.first_rank = rank, .rank = rank, .begin = rows_before(row, key)};
  for (const Segment& segment : row) {
    if (segment.degree == 1) {
      block.lengths.push_back(segment.tokens());
      block.tokens += segment.tokens();
    }
  }
  block.rank_tokens = {block.tokens};
  return block;
}

Block make_block(const Key& key,
                 const std::vector<std::int32_t>& order,
                 const std::vector<Segment>& row,
                 std::int32_t rank) {
  const Way& way = key.way;
  const Node node = node_of(rank, way.degree);
  const std::int32_t i = rank - node.first_rank;
  const std::vector<Placement> placements = placements_of(key, order, node);
  Block block{.degree = way.degree,
              .level_degree = way.degree,
              .backend = way.backend,
              .wave = key.wave,
              .inner = way.ulysses_degree,
              .first_rank = node.first_rank,
              .rank = rank,
              .begin = rows_before(row, key)};
  for (const Placement& placement : placements) {
    block.lengths.push_back(placement.tokens);
    block.tokens += tokens_of(placement, i);
  }
  if (way.ulysses_degree > 1) {
    const std::vector<Counts> pieces = rank_pieces(placements, i - i % block.inner, block.inner);
    count_rows(pieces, block);
    order_rows(pieces, block);
  }
  if (way == head_split(way.degree)) {
    block.level = level_rows(key, order);
  }
  if (ring_size(way) > 1) {
    block.pieces = zigzag_pieces(placements, ring_size(way));
  }
  return block;
}

}  // namespace

std::vector<Block> make_blocks(const Round& round,
                               std::int32_t rank,
                               const std::vector<Way>& ways) {
  const std::vector<std::int32_t> order = row_order(round);
  const std::vector<Segment> row = rank_row(round, rank);
  std::vector<Block> blocks;
  for (const Way& way : ways) {
    for (const Wave wave : waves_of(way, round)) {
      blocks.push_back(make_block({.round = round, .way = way, .wave = wave}, order, row, rank));
    }
  }
  blocks.push_back(make_leaf(round, row, rank));
  return blocks;
}

Block inner_block(const Block& usp) {
  const std::int32_t index = (usp.rank - usp.first_rank) / usp.inner;
  Block block{.degree = usp.inner,
              .level_degree = usp.level_degree,
              .backend = Backend::kUlysses,
              .wave = usp.wave,
              .inner = usp.inner,
              .first_rank = usp.first_rank + index * usp.inner,
              .rank = usp.rank,
              .tokens = usp.tokens,
              .lengths = own_lengths(usp.pieces, index),
              .rank_tokens = usp.rank_tokens,
              .to_sequences = usp.to_sequences};
  return block;
}

Block take_first(Block& leaf, std::int32_t sequences) {
  const auto cut = leaf.lengths.begin() + sequences;
  Block first{.first_rank = leaf.first_rank, .rank = leaf.rank, .begin = leaf.begin};
  first.lengths.assign(leaf.lengths.begin(), cut);
  first.tokens = std::accumulate(leaf.lengths.begin(), cut, std::int64_t{0});
  first.rank_tokens = {first.tokens};
  leaf.lengths.erase(leaf.lengths.begin(), cut);
  leaf.begin += first.tokens;
  leaf.tokens -= first.tokens;
  leaf.rank_tokens = {leaf.tokens};
  return first;
}

std::int64_t window_within(const Block& block, std::int64_t window) {
  const bool needed = !block.lengths.empty() && block.lengths.front() > window;
  return needed ? window : 0;
}

}  // namespace nsp
