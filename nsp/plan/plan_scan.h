// Fast reading of canonical plans: the bytes that json_text writes, which cross to Python and into
// the executor every step. For plan_read.cpp alone.
#pragma once

#include <optional>
#include <string_view>

#include "nsp/plan/plan.h"

namespace nsp {

// The plan whose json_text is exactly `text`; nothing when the text is anything else, a plan in
// another form or a faulty one: plan_from_json reads those, and names faults.
std::optional<Plan> scan_plan(std::string_view text);

}  // namespace nsp
