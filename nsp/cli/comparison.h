// Planners on the same batches: what `nsp compare` counts and shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nsp/base/json.h"

namespace nsp {

struct PlannedBatch {
  double step_seconds = 0;   // simulated
  double load_seconds = 0;   // of a layer
  double bound_seconds = 0;  // of this planner's backends; 0: none
  double planning_ms = 0;
  std::int64_t rounds = 0;
};

struct PlannerRow {
  std::string planner;
  std::vector<std::optional<PlannedBatch>> batches{};  // none: no plan
  std::string why_none{};                              // of the first batch without a plan
};

// Whether some planner has planned some batch.
bool any_planned(const std::vector<PlannerRow>& rows);

// A row for each planner; columns: simulated step (mean), speed relative to `static`, gap (load
// over the least bound of any row, as planners with more backends have lower ones), planning time,
// batches on which it is faster or slower than `nsp`. Below, every batch that `nsp` loses and
// why plans are missing. Means are over the batches that all planners with any plan have planned;
// without such a batch there are none.
std::string comparison_table(const std::vector<PlannerRow>& rows);

Json comparison_json(const std::vector<PlannerRow>& rows);

}  // namespace nsp
