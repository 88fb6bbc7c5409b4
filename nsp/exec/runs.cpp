#include "nsp/exec/runs.h"

namespace nsp {
namespace {

// Members and rows of all received rows, by source.
struct Origin {
  std::int32_t source = 0;
  std::int64_t row = 0;
};

std::vector<Origin> origins(const Block& block) {
  std::vector<Origin> result;
  for (std::int32_t source = 0; source < block.degree; ++source) {
    for (std::int64_t row = 0; row < block.rank_tokens[static_cast<std::size_t>(source)]; ++row) {
      result.push_back({source, row});
    }
  }
  return result;
}

}  // namespace

std::vector<Run> runs_of(const Block& block) {
  const std::vector<Origin> by_source = origins(block);
  std::vector<Run> runs;
  std::int64_t to = 0;
  for (const std::int64_t received : block.to_sequences) {
    const auto& [source, row] = by_source[static_cast<std::size_t>(received)];
    if (!runs.empty() && runs.back().source == source &&
        runs.back().row + runs.back().rows == row) {
      ++runs.back().rows;
    } else {
      runs.push_back({.source = source, .row = row, .to = to, .rows = 1});
    }
    ++to;
  }
  return runs;
}

}  // namespace nsp
