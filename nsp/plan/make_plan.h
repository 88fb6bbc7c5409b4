// Building complete plans: what every planner and every plan given by hand ends with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nsp/plan/issue_order.h"
#include "nsp/plan/plan.h"
#include "nsp/plan/way.h"

namespace nsp {

struct PlanSettings {
  std::int32_t world = 1;
  std::int32_t sp_max = 1;
  std::int32_t ranks_per_host = 1;  // a divisor of the world
  std::int64_t token_budget = 0;    // tokens a rank and round; 0: as many as the fullest rank holds
  std::string planner = "given";
  std::string effort = "default";
  std::string model_hash{};
  std::string profile_hash{};
};

// A placement on a node with the backend that its degree asks for: local for 1, ulysses above.
Placement place(std::int64_t sequence, std::int64_t tokens, const Node& node);

// On the node of way.degree from first_rank, run as `way` says.
Placement place(std::int64_t sequence,
                std::int64_t tokens,
                std::int32_t first_rank,
                const Way& way);

// Sets cuts, order and leaf_first of the index-th round, which has its placements and the default
// schedule.
using ScheduleRule = std::function<void(Round&, std::size_t index)>;

// A sealed plan of these placements, one list a round, each sorted by sequence here. Fills counts,
// schedules (the default ones without a rule), predicted.tokens_max, feasible (the budget is kept)
// and the hash. Predicted seconds and bound may be set afterwards: the hash does not cover them;
// call seal after any other change. Throws BadInput for a bad tree, a node outside it, tokens < 1,
// or a ulysses_degree that does not divide the degree.
Plan make_plan(const PlanSettings& settings,
               std::vector<std::vector<Placement>> rounds,
               std::vector<Dropped> dropped = {},
               const ScheduleRule& schedule = nullptr);

// Sets plan.hash to the hash of the content.
void seal(Plan& plan);

}  // namespace nsp
