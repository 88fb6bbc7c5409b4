// The rules of check.h in groups; each appends one sentence a broken rule. For check.cpp alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

using Violations = std::vector<std::string>;

// Each sequence once, or dropped; safe for any plan.
void check_once(const Plan& plan, Violations& out);
void check_dropped(const Plan& plan, Violations& out);

// These expect a valid tree, nodes and tokens.
void check_num_tokens(const Plan& plan, Violations& out);
void check_schedule(const Plan& plan, std::size_t r, Violations& out);
void check_exchanges(const Plan& plan, std::size_t r, Violations& out);
void check_budget(const Plan& plan, std::size_t r, Violations& out);

}  // namespace nsp
