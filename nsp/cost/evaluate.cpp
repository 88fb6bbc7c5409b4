#include "nsp/cost/evaluate.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "nsp/base/error.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

void check_node(const Placement& placement, std::int32_t world) {
  if (!is_node(placement.node, world, placement.node.degree)) {
    bad_input("sequence", placement.sequence, "is on a node that is not in the tree");
  }
}

// Sums of the nodes of one way, by first rank / degree.
struct WaySums {
  Way way;
  std::vector<NodeSums> nodes;
};

std::vector<WaySums> node_sums(const CostModel& model, const Round& round, std::int32_t world) {
  std::vector<WaySums> sums;
  for (const Placement& placement : round.placements) {
    check_node(placement, world);
    const Way way = way_of(placement);
    auto it = std::ranges::find(sums, way, &WaySums::way);
    if (it == sums.end()) {
      const auto nodes = static_cast<std::size_t>(world / way.degree);
      it = sums.insert(sums.end(), {.way = way, .nodes = std::vector<NodeSums>(nodes)});
    }
    const auto node = static_cast<std::size_t>(placement.node.first_rank / way.degree);
    it->nodes[node].add(model.sequence(placement.tokens, way));
  }
  return sums;
}

void add_nodes(const CostModel& model, const WaySums& sums, RoundLoad& load) {
  const auto degree = static_cast<std::size_t>(sums.way.degree);
  for (std::size_t node = 0; node < sums.nodes.size(); ++node) {
    if (sums.nodes[node].sequences == 0) {
      continue;
    }
    const Passes cost = model.phases(sums.way, sums.nodes[node]).sum();
    for (std::size_t rank = node * degree; rank < (node + 1) * degree; ++rank) {
      load.ranks[rank] += cost;
    }
  }
}

void add_dense(const CostModel& model, RoundLoad& load) {
  const auto ep = static_cast<std::size_t>(model.ep());
  for (std::size_t first = 0; first < load.ranks.size(); first += ep) {
    const auto begin = load.tokens.begin() + static_cast<std::ptrdiff_t>(first);
    const std::int64_t sum = std::accumulate(begin, begin + model.ep(), std::int64_t{0});
    for (std::size_t rank = first; rank < first + ep; ++rank) {
      if (ep == 1) {
        load.ranks[rank] += model.dense(sum);
      } else {
        load.ranks[rank] += model.dense_before(load.tokens[rank]);
        load.ranks[rank] += model.experts(sum);
      }
    }
  }
}

void check_groups(const CostModel& model, std::int32_t world) {
  if (world % model.ep() != 0) {
    bad_input("ep", model.ep(), "must divide the world of " + std::to_string(world) + " ranks");
  }
}

}  // namespace

void check_ep(std::int32_t ep, std::int32_t world, const ModelShape& shape) {
  const bool power = ep >= 1 && (ep & (ep - 1)) == 0;
  if (!power || world % ep != 0) {
    bad_input(
        "ep",
        ep,
        "must be a power of two that divides the world of " + std::to_string(world) + " ranks");
  }
  if (ep > 1 && shape.experts == 0) {
    bad_input("ep", ep, "must be 1: " + shape.name + " has no experts");
  }
}

std::int64_t RoundLoad::tokens_max() const {
  return tokens.empty() ? 0 : std::ranges::max(tokens);
}

RoundLoad evaluate(const CostModel& model, const Round& round, std::int32_t world) {
  check_groups(model, world);
  RoundLoad load{.ranks = std::vector<Passes>(static_cast<std::size_t>(world), model.dense_fixed()),
                 .tokens = rank_tokens(round, world),
                 .largest = {}};
  for (const WaySums& sums : node_sums(model, round, world)) {
    add_nodes(model, sums, load);
  }
  add_dense(model, load);
  for (const Passes& cost : load.ranks) {
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
  return result;
}

Predicted predicted(const Evaluation& evaluation) {
  return {.seconds = static_cast<double>(evaluation.step) / 1e9,
          .forward = static_cast<double>(evaluation.load.forward) / 1e9,
          .backward = static_cast<double>(evaluation.load.backward) / 1e9,
          .tokens_max = evaluation.tokens_max};
}

}  // namespace nsp
