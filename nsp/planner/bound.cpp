#include "nsp/planner/bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

bool fits(std::int64_t tokens, std::int32_t degree, std::int64_t token_budget) {
  return token_budget == 0 || (tokens + degree - 1) / degree <= token_budget;
}

// Nanoseconds x ranks of compute and traffic.
std::int64_t area_of(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  const SequenceCost cost = model.sequence(tokens, degree);
  return degree * (cost.compute.sum() + cost.prologue.sum() + cost.epilogue.sum());
}

// Nanoseconds, dense included, on the rank with the largest slice when nothing else runs.
std::int64_t single_of(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  const SequenceCost cost = model.sequence(tokens, degree);
  Passes traffic = cost.prologue;
  traffic += cost.epilogue;
  return model.node(degree, cost.compute, cost.path, traffic).sum() +
         model.dense((tokens + degree - 1) / degree).sum();
}

// The least of `cost` over the degrees that fit; the largest degree always counts.
template <typename Cost>
std::int64_t least(Cost cost,
                   const CostModel& model,
                   std::int64_t tokens,
                   std::span<const std::int32_t> degrees,
                   std::int64_t token_budget) {
  std::int64_t result = kNever;
  for (const std::int32_t degree : degrees) {
    if (fits(tokens, degree, token_budget) || degree == degrees.back()) {
      result = std::min(result, cost(model, tokens, degree));
    }
  }
  return result;
}

}  // namespace

std::int64_t lower_bound(const CostModel& model,
                         std::span<const std::int64_t> tokens,
                         std::int32_t world,
                         std::int32_t sp_max,
                         std::int64_t token_budget) {
  if (tokens.empty()) {
    return 0;
  }
  const std::vector<std::int32_t> degrees = model.allowed_degrees(sp_max);
  std::int64_t area = 0;
  std::int64_t sum = 0;
  for (const std::int64_t length : tokens) {
    area += least(area_of, model, length, degrees, token_budget);
    sum += length;
  }
  const std::int64_t longest = *std::ranges::max_element(tokens);
  const std::int64_t single = least(single_of, model, longest, degrees, token_budget);
  area += model.dense(sum).sum();  // each rank rounds up: together they pay at least this
  const std::int64_t rounds = token_budget == 0 ? 1 : least_rounds(sum, world, token_budget);
  return model.dense_fixed().sum() * rounds + std::max(area / world, single);
}

}  // namespace nsp
