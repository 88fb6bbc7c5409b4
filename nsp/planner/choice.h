// The words of a request: which planner solves it, and in what ways sequences may run.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/baselines/static.h"
#include "nsp/planner/planner.h"

namespace nsp {

enum class PlannerKind : std::uint8_t { kNsp, kAlgorithm1, kStatic, kTwoLevel, kMegatron, kFlexSp };

struct Choice {
  PlannerKind kind = PlannerKind::kNsp;
  std::int32_t degree = 0;           // static:K; 0: the best one
  Balance balance = Balance::kCost;  // of static
  bool usp = false;                  // static: between hosts
};

// Throws BadInput for a name not in planner_names(), or a degree the tree does not have.
Choice parse_planner(const PlanRequest& request);

// request.backends as the search takes them. Throws BadInput for a name not in backend_names().
std::vector<Backend> parse_backends(const PlanRequest& request);

// What the planner runs beside local: nsp what the request says, static-usp ulysses and usp-ring,
// the others ulysses.
std::vector<Backend> backends_of(const PlanRequest& request, const Choice& choice);

// Throws BadInput where the largest degree, or one that is given, has no way: ulysses divides the
// heads, gather and ring do not care, usp needs several hosts.
void check_degrees(const PlanRequest& request,
                   const ModelShape& shape,
                   std::int32_t ranks_per_host);

}  // namespace nsp
