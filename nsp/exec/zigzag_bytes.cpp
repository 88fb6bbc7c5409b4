#include "nsp/exec/zigzag_bytes.h"

#include <algorithm>

#include "nsp/exec/zigzag_sizes.h"

namespace nsp {
namespace {

// Ulysses holds during its compute what it keeps (forward) or the operands and results of its
// kernel (backward), beside all that the ring does there.
StageBytes usp_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  const Block inside = inner_block(block);
  StageBytes bytes = exchange_bytes(inside, heads, value, stage, backward);
  if (stage != Stage::kCompute && (backward || stage == Stage::kPrologue)) {
    return bytes;
  }
  const HeadSplit split = split_heads(heads, block.inner);
  const Ring ring = ring_of(block, split);
  const sizes::Row row(split.query, split.kv, value);
  const sizes::StageList stages = block.backend == Backend::kUspRing
                                      ? sizes::ring_bytes(block.pieces, ring, row, backward)
                                      : sizes::gather_bytes(block.pieces, ring, row, backward);
  const std::int64_t kept = stages.back().after;
  if (stage == Stage::kCompute) {
    const std::int64_t beside =
        bytes.after + (backward ? zigzag_tokens(block.pieces, ring.index) * row.q : 0);
    for (const StageBytes& of : stages) {
      bytes.peak = std::max(bytes.peak, beside + of.peak);
    }
  } else {
    bytes.peak += kept;
  }
  bytes.after += kept;
  return bytes;
}

}  // namespace

StageBytes zigzag_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward) {
  if (block.inner > 1) {
    return usp_bytes(block, heads, value, stage, backward);
  }
  const Ring ring = ring_of(block, {.query = heads.query, .kv = heads.kv});
  const sizes::Row row(heads.query, heads.kv, value);
  const sizes::StageList stages = block.backend == Backend::kRing
                                      ? sizes::ring_bytes(block.pieces, ring, row, backward)
                                      : sizes::gather_bytes(block.pieces, ring, row, backward);
  return stages[static_cast<std::size_t>(stage)];
}

}  // namespace nsp
