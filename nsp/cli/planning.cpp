#include "nsp/cli/planning.h"

#include <fmt/format.h>

namespace nsp {

PlanRequest request_of(const PlanningOptions& options) {
  return {.lengths = {},
          .world = options.world,
          .ranks_per_host = options.ranks_per_host,
          .sp_max = options.sp_max,
          .token_budget = options.token_budget,
          .effort = options.effort,
          .backends = options.backends,
          .ep = options.ep};
}

std::string why_infeasible(const PlanResult& result) {
  if (!result.why_infeasible.empty()) {
    return result.why_infeasible;
  }
  return fmt::format(
      "the fullest rank would hold {} tokens in a round, token_budget {} allows fewer; raise it to "
      "that",
      result.plan.predicted.tokens_max,
      result.plan.token_budget);
}

}  // namespace nsp
