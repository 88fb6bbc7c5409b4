#include "nsp/cli/planning.h"

namespace nsp {

PlanRequest request_of(const PlanningOptions& options) {
  PlanRequest request{.lengths = {},
                      .world = options.world,
                      .ranks_per_host = options.ranks_per_host,
                      .sp_max = options.sp_max,
                      .token_budget = options.token_budget,
                      .effort = options.effort,
                      .ep = options.ep};
  if (!options.backends.empty()) {
    request.backends = options.backends;
  }
  return request;
}

}  // namespace nsp
