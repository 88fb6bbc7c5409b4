#include "nsp/cost/evaluate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

void check_node(const Placement& placement, std::int32_t world) {
  if (!is_node(placement.node, world, placement.node.degree)) {
    bad_input("sequence", placement.sequence, "is on a node that is not in the tree");
  }
}

// Sums of each active node and way, in order of first rank and way.
std::map<std::pair<std::int32_t, Way>, NodeSums> node_sums(const CostModel& model,
                                                           const Round& round,
                                                           std::int32_t world) {
  std::map<std::pair<std::int32_t, Way>, NodeSums> sums;
  for (const Placement& placement : round.placements) {
    check_node(placement, world);
    const Way way = way_of(placement);
    sums[{placement.node.first_rank, way}].add(model.sequence(placement.tokens, way));
  }
  return sums;
}

}  // namespace

std::int64_t RoundLoad::tokens_max() const {
  return tokens.empty() ? 0 : std::ranges::max(tokens);
}

RoundLoad evaluate(const CostModel& model, const Round& round, std::int32_t world) {
  RoundLoad load{.ranks = std::vector<Passes>(static_cast<std::size_t>(world), model.dense_fixed()),
                 .tokens = rank_tokens(round, world),
                 .largest = {}};
  for (const auto& [at, sums] : node_sums(model, round, world)) {
    const auto& [first_rank, way] = at;
    const Passes cost = model.phases(way, sums).sum();
    for (std::int32_t rank = first_rank; rank < first_rank + way.degree; ++rank) {
      load.ranks[static_cast<std::size_t>(rank)] += cost;
    }
  }
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    Passes& cost = load.ranks[rank];
    cost += model.dense(load.tokens[rank]);
    load.largest = {.forward = std::max(load.largest.forward, cost.forward),
                    .backward = std::max(load.largest.backward, cost.backward)};
  }
  return load;
}

Evaluation evaluate(const CostModel& model, const Plan& plan) {
  Evaluation result;
  for (const Round& round : plan.rounds) {
    result.rounds.push_back(evaluate(model, round, plan.world));
    const RoundLoad& load = result.rounds.back();
    result.load += load.largest;
    result.step += model.round_step(load.largest, load.tokens_max(), plan.world);
    result.tokens_max = std::max(result.tokens_max, load.tokens_max());
  }
  if (!plan.rounds.empty()) {
    result.step += model.optimizer(plan.world);
  }
  result.bytes_max = model.attention_output_bytes(result.tokens_max);
  return result;
}

Predicted predicted(const Evaluation& evaluation) {
  return {.seconds = static_cast<double>(evaluation.step) / 1e9,
          .forward = static_cast<double>(evaluation.load.forward) / 1e9,
          .backward = static_cast<double>(evaluation.load.backward) / 1e9,
          .tokens_max = evaluation.tokens_max,
          .bytes_max = evaluation.bytes_max};
}

}  // namespace nsp
