// The planners' front door: lengths and settings in, a checked plan with prediction and bound out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nsp/cost/profile.h"
#include "nsp/plan/plan.h"
#include "nsp/planner/marks.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// What to do with a sequence longer than sp_max x token_budget.
enum class OverLength : std::uint8_t { kError, kSkip, kTruncate };

OverLength parse_over_length(const std::string& name);  // error, skip, truncate

struct PlanRequest {
  std::vector<std::int64_t> lengths;  // tokens, each >= 1; none: a valid empty plan without rounds
  std::int32_t world = 1;
  // A divisor of the world. 0: the profile's, or the world where that is less, or the greatest
  // divisor of both, so that the same nodes cross hosts.
  std::int32_t ranks_per_host = 0;
  std::int32_t sp_max = 1;
  std::int64_t token_budget = 0;  // tokens a rank a round; 0: ceil(1.2 x all tokens / world)
  std::string planner = "nsp";    // planner_names()
  // fast, default, thorough: work limits of searching planners. A step of `thorough` is not
  // simulated slower than that of `default`.
  std::string effort = "default";
  OverLength over_length = OverLength::kError;
  // Backward runs each layer again: issue orders, and plans where nsp has several, are judged by
  // such a step. A budget of bytes implies it.
  bool checkpointing = false;
  std::int64_t byte_budget = 0;  // saved attention output a rank and layer; 0: recompute everything
  // Offloaded attention output a rank and layer; 0: none. Needs a profile with
  // host_bytes_per_second.
  std::int64_t host_budget = 0;
  std::optional<MarkOrder> mark_order{};  // of what is saved; none: the better by simulated step
  // How planner nsp may run a sequence beside local: backend_names().
  std::vector<std::string> backends = {"ulysses"};
  // Ranks of an expert-parallel group, consecutive: a power of two that divides the world. Above 1
  // loads count the wait at the expert exchange; execution does not depend on it.
  std::int32_t ep = 1;
  std::int32_t prefix = 64;  // algorithm1: longest sequences that are searched
  std::int32_t beam = 8;     // algorithm1: states kept
  bool monotone = true;      // algorithm1: degrees never grow along the sorted sequences
};

// plan.feasible == false: the budget does not hold, and why_infeasible says which sequence or rank
// and what would fit; such a plan must not be executed (it may be without rounds).
struct PlanResult {
  Plan plan;
  std::string why_infeasible;
};

// The names that PlanRequest::planner accepts.
std::vector<std::string> planner_names();
// Names of what these planners may use between them; nsp has what a request says and adds nothing.
// Ulysses is always among it. Throws BadInput for another name; a degree behind it is not read.
std::vector<std::string> backends_used(const std::vector<std::string>& planners);
// ulysses, gather, ring, usp-ring, usp-gather, usp (both), all.
std::vector<std::string> backend_names();

// Throws BadInput for a planner or a backend of no such name; whether they can do what the rest of
// the request says is `plan`'s to see.
void check_names(const PlanRequest& request);

// Deterministic: same inputs, same plan, whatever machine, thread or time; only planning_ms
// differs. Throws BadInput for a request that no batch could satisfy (tree, heads, lengths, names).
// Safe to call from several threads.
PlanResult plan(const PlanRequest& request, const ModelShape& shape, const Profile& profile);

}  // namespace nsp
