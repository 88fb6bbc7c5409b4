// Planners on the same batches: what `nsp compare` counts and shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nsp/base/json.h"

namespace nsp {

struct PlannedBatch {
  double step_seconds = 0;  // simulated
  double gap = 0;           // load / bound - 1
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

// A row for each planner; columns: simulated step (mean), speed relative to `static`, gap, planning
// time, batches on which it is faster or slower than `nsp`. Below, every batch that `nsp` loses and
// why plans are missing. Means are over the batches that all planners with any plan have planned;
// without such a batch there are none.
std::string comparison_table(const std::vector<PlannerRow>& rows);

Json comparison_json(const std::vector<PlannerRow>& rows);

}  // namespace nsp
