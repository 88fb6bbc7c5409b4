#include "nsp/planner/problem.h"

#include <algorithm>
#include <utility>

#include "nsp/cost/evaluate.h"
#include "nsp/plan/make_plan.h"

namespace nsp {
namespace {

std::int64_t dense_share(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  return model.dense(tokens).sum() / degree;
}

}  // namespace

void sort_longest_first(std::vector<Sequence>& sequences) {
  std::ranges::sort(sequences, [](const Sequence& a, const Sequence& b) {
    return a.tokens != b.tokens ? a.tokens > b.tokens : a.index < b.index;
  });
}

std::vector<std::int64_t> tokens_of(const std::vector<Sequence>& sequences) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(sequences.size());
  for (const Sequence& sequence : sequences) {
    tokens.push_back(sequence.tokens);
  }
  return tokens;
}

Solution score(const Problem& problem, const std::vector<Node>& nodes) {
  std::vector<Placement> placements;
  placements.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Sequence& sequence = problem.sequences[i];
    placements.push_back(place(sequence.index, sequence.tokens, nodes[i]));
  }
  return score(problem, std::move(placements));
}

Solution score(const Problem& problem, std::vector<Placement> placements) {
  Round round{.placements = std::move(placements)};
  const RoundLoad load = evaluate(*problem.model, round, problem.world);
  return {.placements = std::move(round.placements),
          .feasible = load.tokens_max() <= problem.token_budget,
          .load = load.largest.sum(),
          .tokens_max = load.tokens_max()};
}

bool better(const Solution& a, const Solution& b) {
  if (a.feasible != b.feasible) {
    return a.feasible;
  }
  return a.feasible ? a.load < b.load : a.tokens_max < b.tokens_max;
}

std::int64_t share(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  const SequenceCost cost = model.sequence(tokens, degree);
  return cost.compute.sum() + cost.traffic().sum() + dense_share(model, tokens, degree);
}

std::int64_t opening_share(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  NodeSums alone;
  alone.add(model.sequence(tokens, degree));
  return model.phases(head_split(degree), alone).sum().sum() + dense_share(model, tokens, degree);
}

}  // namespace nsp
