// A request after its checks: what planners may take for granted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/planner/baselines/static.h"
#include "nsp/planner/planner.h"
#include "nsp/planner/problem.h"

namespace nsp {

enum class PlannerKind : std::uint8_t { kNsp, kAlgorithm1, kStatic, kTwoLevel, kMegatron };

struct Choice {
  PlannerKind kind = PlannerKind::kNsp;
  std::int32_t degree = 0;           // static:K; 0: the best one
  Balance balance = Balance::kCost;  // of static
  bool usp = false;                  // static: between hosts
};

// Throws BadInput: settings that no batch could satisfy. `ranks_per_host`: the request's, or what
// stands for its 0.
void check(const PlanRequest& request, const ModelShape& shape, std::int32_t ranks_per_host);

// Throws BadInput for a name not in planner_names(), or a degree the tree does not have.
Choice parse_planner(const PlanRequest& request);

// request.backends as the search takes them. Throws BadInput for a name not in backend_names().
std::vector<Backend> parse_backends(const PlanRequest& request);

// What the planner runs beside local: nsp what the request says, static-usp ulysses and usp-ring,
// the others ulysses.
std::vector<Backend> backends_of(const PlanRequest& request, const Choice& choice);

// token_budget, or its default: ceil(1.2 x tokens / world).
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
