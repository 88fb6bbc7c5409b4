#include "nsp/cli/planning.h"

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

}  // namespace nsp
