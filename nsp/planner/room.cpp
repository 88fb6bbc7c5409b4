#include "nsp/planner/room.h"

#include "nsp/plan/layout.h"
#include "nsp/plan/way.h"

namespace nsp {

bool Room::take(const Placement& placement) {
  for (std::int32_t i = 0; i < placement.node.degree; ++i) {
    const std::int32_t rank = placement.node.first_rank + i;
    if (owned_tokens(placement, rank) > of(rank)) {
      return false;
    }
  }
  for (std::int32_t i = 0; i < placement.node.degree; ++i) {
    const std::int32_t rank = placement.node.first_rank + i;
    of(rank) -= owned_tokens(placement, rank);
  }
  return true;
}

std::vector<std::int64_t> hidden_bytes(const Round& round,
                                       std::int32_t world,
                                       const CostModel& model) {
  const auto ranks = static_cast<std::size_t>(world);
  std::vector<std::int64_t> tokens(ranks, 0), attention(ranks, 0);
  for (const Placement& placement : round.placements) {
    const SequenceCost cost = model.sequence(placement.tokens, way_of(placement));
    for (std::int32_t i = 0; i < placement.node.degree; ++i) {
      const std::int32_t member = placement.node.first_rank + i;
      const auto rank = static_cast<std::size_t>(member);
      tokens[rank] += tokens_of(placement, i);
      attention[rank] += cost.compute.forward;
    }
  }
  std::vector<std::int64_t> bytes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t dense = model.dense_fixed().forward + model.dense(tokens[rank]).forward;
    bytes.push_back(model.host_bytes(attention[rank] + dense));
  }
  return bytes;
}

}  // namespace nsp
