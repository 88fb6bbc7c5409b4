#include "nsp/exec/parts.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "nsp/plan/wave.h"
#include "nsp/plan/way.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// On a leaf q, k and v are the layer's own.
Mark part_of(const Placement& placement) {
  const Mark mark = mark_of(placement);
  return placement.node.degree == 1 && mark == Mark::kSaveQkv ? Mark::kSave : mark;
}

bool keeps(Mark mark) {
  return mark == Mark::kSave || mark == Mark::kOffload;
}

// Takes a block's sequences from the front, a part at a time.
class Cutter {
 public:
  Cutter(const Block& block, std::int32_t rank)
      : block_(block),
        own_(static_cast<std::size_t>(rank - block.first_rank)),
        starts_(block.rank_tokens.size(), 0),
        taken_(block.rank_tokens.size(), 0) {
    std::exclusive_scan(
        block.rank_tokens.begin(), block.rank_tokens.end(), starts_.begin(), std::int64_t{0});
  }

  Block take(std::int64_t sequences) {
    Block part = like_block();
    part.begin = block_.begin + taken_[own_];
    const auto first = block_.lengths.begin() + sequence_;
    part.lengths.assign(first, first + sequences);
    const std::int64_t rows =
        std::accumulate(part.lengths.begin(), part.lengths.end(), std::int64_t{0});
    take_rows(rows, part);
    part.tokens = part.rank_tokens[own_];
    sequence_ += sequences;
    return part;
  }

 private:
  // Its rows travel as the block's do; no level of a part has more than the block's.
  Block like_block() const {
    return {.degree = block_.degree,
            .level_degree = block_.level_degree,
            .backend = block_.backend,
            .wave = block_.wave,
            .inner = block_.inner,
            .first_rank = block_.first_rank,
            .rank = block_.rank,
            .transport = block_.transport,
            .fetch_nanoseconds = block_.fetch_nanoseconds,
            .level = block_.level};
  }

  // The part's rows by sequence, and where they lie among the part's rows by source.
  void take_rows(std::int64_t rows, Block& part) {
    part.rank_tokens.assign(starts_.size(), 0);
    if (block_.to_sequences.empty()) {  // a leaf
      part.rank_tokens[0] = rows;
      taken_[0] += rows;
      return;
    }
    const std::span order(block_.to_sequences.data() + row_, static_cast<std::size_t>(rows));
    for (const std::int64_t received : order) {
      ++part.rank_tokens[source_of(received)];
    }
    Counts shift(starts_.size(), 0);  // from a received row of the block to one of the part
    std::exclusive_scan(
        part.rank_tokens.begin(), part.rank_tokens.end(), shift.begin(), std::int64_t{0});
    for (std::size_t i = 0; i < shift.size(); ++i) {
      shift[i] -= starts_[i] + taken_[i];
      taken_[i] += part.rank_tokens[i];
    }
    for (const std::int64_t received : order) {
      part.to_sequences.push_back(received + shift[source_of(received)]);
    }
    row_ += rows;
  }

  std::size_t source_of(std::int64_t received) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(starts_, received) - starts_.begin()) -
           1;
  }

  const Block& block_;
  std::size_t own_;
  Counts starts_;  // first received row of each source
  Counts taken_;   // rows of each source that are in a part already
  std::int64_t sequence_ = 0;
  std::int64_t row_ = 0;
};

}  // namespace

std::int64_t node_rows(const Block& block) {
  return std::accumulate(block.rank_tokens.begin(), block.rank_tokens.end(), std::int64_t{0});
}

Parts cut_by_marks(const Block& block,
                   Backend backend,
                   const Round& round,
                   std::int32_t rank,
                   std::int64_t before) {
  const Node node{.first_rank = block.first_rank, .degree = block.degree};
  Parts parts;
  std::int64_t save_qkv = 0, save = 0, kept = 0;  // sequences of the node
  for (const Placement& placement : round.placements) {
    if (placement.node.degree != block.degree || placement.backend != backend ||
        wave_of(placement, round.schedule.cuts) != block.wave) {
      continue;
    }
    const Mark mark = part_of(placement);
    parts.any_saved = parts.any_saved || mark != Mark::kRecompute;
    parts.any_rest = parts.any_rest || mark == Mark::kRecompute;
    save_qkv += placement.node == node && mark == Mark::kSaveQkv ? 1 : 0;
    save += placement.node == node && mark == Mark::kSave ? 1 : 0;
    kept += placement.node == node && keeps(mark) ? 1 : 0;
  }
  const auto count = std::ssize(block.lengths);
  const auto until = [&](std::int64_t end) {
    return std::clamp<std::int64_t>(end - before, 0, count);
  };
  Cutter cutter(block, rank);
  const std::int64_t qkv_end = until(save_qkv), end = until(save_qkv + kept);
  parts.save_qkv = cutter.take(qkv_end);
  parts.save = cutter.take(end - qkv_end);
  parts.rest = cutter.take(count - end);
  if (kept > save) {
    const std::int64_t stays = Cutter(block, rank).take(until(save_qkv + save)).tokens;
    parts.offloaded_rows = parts.saved_rows() - stays;
  }
  return parts;
}

}  // namespace nsp
