#include "nsp/cost/evaluate.h"

#include <algorithm>
#include <bit>
#include <string>

#include "nsp/base/error.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

// Sums over the sequences of one node.
struct NodeSums {
  Passes work;
  Passes path;
  Passes traffic;
  bool active = false;

  void add(const SequenceCost& cost) {
    active = true;
    work += cost.compute;
    traffic += cost.prologue;
    traffic += cost.epilogue;
    path = {.forward = std::max(path.forward, cost.path.forward),
            .backward = std::max(path.backward, cost.path.backward)};
  }
};

std::size_t level_of(const Placement& placement, std::int32_t world) {
  const Node& node = placement.node;
  if (!is_node(node, world, node.degree)) {
    bad_input("sequence", placement.sequence, "is on a node that is not in the tree");
  }
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(node.degree)));
}

// levels[l][i]: the i-th node of degree 2^l.
std::vector<std::vector<NodeSums>> node_sums(const CostModel& model,
                                             const Round& round,
                                             std::int32_t world) {
  std::vector<std::vector<NodeSums>> levels;
  for (const Placement& placement : round.placements) {
    const std::size_t level = level_of(placement, world);
    for (std::size_t l = levels.size(); l <= level; ++l) {
      levels.emplace_back(static_cast<std::size_t>(world) >> l);
    }
    const auto index = static_cast<std::size_t>(placement.node.first_rank) >> level;
    levels[level][index].add(model.sequence(placement.tokens, placement.node.degree));
  }
  return levels;
}

void add_nodes(const CostModel& model,
               const std::vector<std::vector<NodeSums>>& levels,
               RoundLoad& load) {
  for (std::size_t l = 0; l < levels.size(); ++l) {
    for (std::size_t i = 0; i < levels[l].size(); ++i) {
      const NodeSums& node = levels[l][i];
      if (!node.active) {
        continue;
      }
      const Passes cost = model.node(std::int32_t{1} << l, node.work, node.path, node.traffic);
      for (std::size_t rank = i << l; rank < (i + 1) << l; ++rank) {
        load.ranks[rank] += cost;
      }
    }
  }
}

}  // namespace

std::int64_t RoundLoad::tokens_max() const {
  return tokens.empty() ? 0 : std::ranges::max(tokens);
}

RoundLoad evaluate(const CostModel& model, const Round& round, std::int32_t world) {
  const auto levels = node_sums(model, round, world);
  RoundLoad load{.ranks = std::vector<Passes>(static_cast<std::size_t>(world), model.dense_fixed()),
                 .tokens = rank_tokens(round, world),
                 .largest = {}};
  add_nodes(model, levels, load);
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
