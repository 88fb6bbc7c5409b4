#include "nsp/exec/block.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "nsp/plan/layout.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

std::int64_t rows_before(const std::vector<Segment>& row, std::int32_t degree) {
  std::int64_t rows = 0;
  for (const Segment& segment : row) {
    rows += segment.degree > degree ? segment.tokens() : 0;
  }
  return rows;
}

// pieces[sequence][i]: tokens that rank i of the node owns.
std::vector<Counts> node_pieces(const Round& round,
                                const std::vector<std::int32_t>& order,
                                const Node& node) {
  std::vector<Counts> pieces;
  for (const std::int32_t index : order) {
    const Placement& p = round.placements[static_cast<std::size_t>(index)];
    if (p.node != node) {
      continue;
    }
    Counts& piece = pieces.emplace_back();
    for (std::int64_t i = 0; i < node.degree; ++i) {
      piece.push_back(boundary(p.tokens, p.sequence, node.degree, i + 1) -
                      boundary(p.tokens, p.sequence, node.degree, i));
    }
  }
  return pieces;
}

void count_rows(const std::vector<Counts>& pieces, Block& block) {
  block.rank_tokens.assign(static_cast<std::size_t>(block.degree), 0);
  for (const Counts& piece : pieces) {
    block.lengths.push_back(std::accumulate(piece.begin(), piece.end(), std::int64_t{0}));
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

LevelRows level_rows(const Round& round,
                     const std::vector<std::int32_t>& order,
                     std::int32_t degree) {
  std::set<std::int32_t> firsts;
  for (const Placement& placement : round.placements) {
    if (placement.node.degree == degree) {
      firsts.insert(placement.node.first_rank);
    }
  }
  LevelRows level;
  for (const std::int32_t first : firsts) {
    Block block{.degree = degree};
    count_rows(node_pieces(round, order, {first, degree}), block);
    const Counts& rows = block.rank_tokens;
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    level.most = std::max(level.most, std::ranges::max(rows));
    level.most_elsewhere = std::max(level.most_elsewhere, all - std::ranges::min(rows));
  }
  return level;
}

Block make_leaf(const std::vector<Segment>& row, std::int32_t rank) {
  Block block{.first_rank = rank, .rank = rank, .begin = rows_before(row, 1)};
  for (const Segment& segment : row) {
    if (segment.degree == 1) {
      block.lengths.push_back(segment.tokens());
      block.tokens += segment.tokens();
    }
  }
  block.rank_tokens = {block.tokens};
  return block;
}

}  // namespace

std::vector<Block> make_blocks(const Round& round,
                               std::int32_t rank,
                               const std::vector<std::int32_t>& degrees) {
  const std::vector<std::int32_t> order = row_order(round);
  const std::vector<Segment> row = rank_row(round, rank);
  std::vector<Block> blocks;
  for (const std::int32_t degree : degrees) {
    const Node node = node_of(rank, degree);
    Block block{.degree = degree,
                .first_rank = node.first_rank,
                .rank = rank,
                .begin = rows_before(row, degree)};
    const std::vector<Counts> pieces = node_pieces(round, order, node);
    count_rows(pieces, block);
    order_rows(pieces, block);
    block.level = level_rows(round, order, degree);
    block.tokens = block.rank_tokens[static_cast<std::size_t>(rank - node.first_rank)];
    blocks.push_back(std::move(block));
  }
  blocks.push_back(make_leaf(row, rank));
  return blocks;
}

Block take_first(Block& leaf, std::int32_t sequences) {
  const auto cut = leaf.lengths.begin() + sequences;
  Block first{.first_rank = leaf.first_rank, .begin = leaf.begin};
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
