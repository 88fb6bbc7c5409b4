// A request after its checks: what planners may take for granted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/planner/planner.h"
#include "nsp/planner/problem.h"

namespace nsp {

// Throws BadInput: settings that no batch could satisfy. `ranks_per_host`: the request's, or what
// stands for its 0.
void check(const PlanRequest& request, const ModelShape& shape, std::int32_t ranks_per_host);

// Throws BadInput when copies to the host are asked for and the profile does not know their speed.
void check_host(const PlanRequest& request, const Profile& profile);

// token_budget, or its default: ceil(1.2 x tokens / world), at most kMaxTokens.
std::int64_t token_budget(const PlanRequest& request);

// The batch after the over-length policy.
struct Kept {
  std::vector<Sequence> sequences;  // longest first
  std::vector<Dropped> dropped;
  std::string why_infeasible;  // policy error and something is too long
};

// `degree`: the largest that the planner may use.
Kept keep(const PlanRequest& request, std::int32_t degree, std::int64_t budget);

}  // namespace nsp
