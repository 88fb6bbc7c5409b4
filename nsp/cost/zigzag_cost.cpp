// What gather, ring and usp cost: the backends that cut a sequence in zigzag over r ring indices of
// u inner ranks each (degree = r u; u = 1 for gather and ring).
//
// Of 2r chunks of c tokens, index i owns chunks i and 2r - 1 - i: whatever i, its queries see
// (2r - 1) c keys of earlier chunks and their own two chunks. Costs are those of index 0.
//   gather  K and V of the node once, forward; one launch of both chunks, bottom-right masks.
//           Backward: K and V again; their own chunks (causal) and the earlier keys (no mask) in
//           two launches, whose dQ are added up; dK and dV rows of both chunks are added up, sent
//           to their owners and added up there.
//   ring    r launches of 2c^2 pairs: its own tokens, causal; then 2c queries x c keys or c x 2c.
//           K and V travel r - 1 hops beside the launches; outputs are merged. Backward: so do dK
//           and dV, each hop's home during the next, the last one's exposed.
//   usp     ulysses over the u ranks of a host around either; each distinct KV head crosses between
//           hosts once, shared among the u ranks, and is copied inside the host where u > KV heads.
#include <algorithm>

#include "nsp/base/error.h"
#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

bool streams(Backend backend) {
  return backend == Backend::kRing || backend == Backend::kUspRing;
}

bool splits_heads_only(Backend backend) {
  return backend == Backend::kLocal || backend == Backend::kUlysses;
}

std::int64_t chunk(std::int64_t tokens, const Way& way) {
  const std::int64_t pieces = 2 * std::int64_t{ring_size(way)};
  return (tokens + pieces - 1) / pieces;
}

Blocks times(Blocks blocks, std::int64_t count) {
  return {.blocks = blocks.blocks * count,
          .rows = blocks.rows * count,
          .entries = blocks.entries * count};
}

Blocks bottom_right_chunks(std::int64_t tokens, std::int64_t c) {
  Blocks blocks = times(causal_blocks(c), 2);
  blocks.blocks += full_blocks(c, tokens - c).blocks;
  return blocks;
}

Blocks split_chunks(std::int64_t tokens, std::int64_t c) {
  Blocks blocks = times(causal_blocks(c), 2);
  blocks += full_blocks(c, tokens - c);
  return blocks;
}

Blocks ring_steps(std::int64_t c, std::int64_t ring) {
  Blocks blocks = causal_blocks(2 * c);
  blocks += times(full_blocks(2 * c, c), ring - 1);
  return blocks;
}

}  // namespace

SequenceCost CostModel::sequence(std::int64_t tokens, const Way& way) const {
  const bool split = way == head_split(way.degree);
  if (!split && (splits_heads_only(way.backend) || way.ulysses_degree < 1 ||
                 way.degree % way.ulysses_degree != 0 || way.degree == way.ulysses_degree)) {
    bad_input("ulysses_degree",
              way.ulysses_degree,
              "does not suit backend " + std::string(name(way.backend)) + " at degree " +
                  std::to_string(way.degree));
  }
  SequenceCost cost = split_heads(tokens, way);
  if (split) {
    return cost;
  }
  if (streams(way.backend)) {
    add_ring(tokens, way, cost);
  } else {
    add_gather(tokens, way, cost);
  }
  return cost;
}

// Nanoseconds to receive K and V of all other ring indices, each pass with its own bytes a value.
Passes CostModel::kv_seconds(std::int64_t tokens, const Way& way, Passes bytes_per_value) const {
  const std::int64_t ring = ring_size(way);
  const std::int64_t copies = kv_copies_[level(way.ulysses_degree)] - shape_.kv_heads;
  const auto seconds = [&](std::int64_t bytes) {
    const Wide head = wide(tokens) * wide(ring - 1) * wide(2 * shape_.head_dim * bytes);
    const auto share = [&](std::int64_t heads) {
      return wide(ceil_ratio(head * wide(heads), way.degree));
    };
    return traffic(share(shape_.kv_heads), link(way.degree)) +
           traffic(share(copies), link(way.ulysses_degree));
  };
  return {.forward = seconds(bytes_per_value.forward),
          .backward = seconds(bytes_per_value.backward)};
}

std::int64_t CostModel::merge_seconds(Wide values) const {
  return ceil_ratio(values * wide(merge_value_), 1'000'000);
}

void CostModel::add_gather(std::int64_t tokens, const Way& way, SequenceCost& cost) const {
  const std::int64_t inner = way.ulysses_degree;
  const std::int64_t heads = shape_.heads / inner;
  const std::int64_t copies = kv_copies_[level(way.ulysses_degree)];
  const std::int64_t kv_heads = std::max<std::int64_t>(1, copies / inner);
  const std::int64_t c = chunk(tokens, way);
  const Passes kv = kv_seconds(tokens, way, {shape_.bytes_per_value, shape_.bytes_per_value});
  cost.prologue += kv;
  cost.epilogue.backward += kv.backward;
  cost.compute = {.forward = forward_.work(bottom_right_chunks(tokens, c), tokens, heads, kv_heads),
                  .backward = backward_.work(split_chunks(tokens, c), tokens, heads, kv_heads)};
  // Forward walks along a query row's keys. Measured blocks without mask take as long with the
  // shorter side either way.
  cost.path.backward = backward_.path(c, heads > kv_heads);
  const Wide rows = 2 * wide(tokens);  // both chunks' on this rank, all ranks' at the owner
  const Wide queries = wide(tokens) * wide(heads * shape_.head_dim) / wide(ring_size(way));
  cost.merge.backward =
      merge_seconds(queries + rows * wide(2 * copies * shape_.head_dim) / wide(inner));
}

void CostModel::add_ring(std::int64_t tokens, const Way& way, SequenceCost& cost) const {
  const std::int64_t inner = way.ulysses_degree;
  const std::int64_t ring = ring_size(way);
  const std::int64_t heads = shape_.heads / inner;
  const std::int64_t copies = kv_copies_[level(way.ulysses_degree)];
  const std::int64_t kv_heads = std::max<std::int64_t>(1, copies / inner);
  const std::int64_t c = chunk(tokens, way);
  const std::int64_t bytes = shape_.bytes_per_value;
  const Passes gradients = kv_seconds(tokens, way, {0, bytes});
  cost.streamed = kv_seconds(tokens, way, {bytes, 2 * bytes});
  cost.epilogue.backward += (gradients.backward + ring - 2) / (ring - 1);
  const Blocks steps = ring_steps(c, ring);
  cost.compute = {.forward = forward_.work(steps, 2 * c, heads, kv_heads),
                  .backward = backward_.work(steps, 2 * c, heads, kv_heads)};
  cost.path = {.forward = forward_.path(2 * c, heads > kv_heads),
               .backward = backward_.path(2 * c, heads > kv_heads)};
  const Wide outputs = wide(tokens) * wide((ring - 1) * heads * shape_.head_dim) / wide(ring);
  const Wide keys = wide(tokens) * wide(2 * copies * shape_.head_dim) / wide(inner);
  cost.merge = {.forward = merge_seconds(outputs), .backward = merge_seconds(outputs + keys)};
}

WayFixed CostModel::way_fixed(const Way& way) const {
  const std::int64_t inner = way.ulysses_degree > 1 ? link_latency_[link(way.ulysses_degree)] : 0;
  WayFixed fixed{.prologue = {inner, inner},
                 .epilogue = {inner, inner},
                 .launch = {.forward = forward_.launch(), .backward = backward_.launch()},
                 .hop = {}};
  const std::int64_t ring = ring_size(way);
  if (ring == 1) {
    return fixed;
  }
  const bool copies = kv_copies_[level(way.ulysses_degree)] > shape_.kv_heads;
  const std::int64_t hop = link_latency_[link(way.degree)] + (copies ? inner : 0);
  fixed.epilogue.backward += hop;
  if (streams(way.backend)) {
    fixed.launches = {.forward = ring, .backward = ring};
    fixed.hop = {.forward = (ring - 1) * hop, .backward = (ring - 1) * hop};
  } else {
    fixed.launches = {.forward = 1, .backward = 2};
    fixed.prologue += Passes{hop, hop};
  }
  return fixed;
}

}  // namespace nsp
