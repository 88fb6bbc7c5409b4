// Static checks of a plan: what must hold before any rank starts a collective.
#pragma once

#include <string>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

// Every broken rule as one sentence with the sequence, rank or node it concerns; empty when the
// plan is sound:
// - each sequence 0..num_sequences-1 exactly once over all placements, or in `dropped` with kept 0
// - aligned nodes inside the world, degree <= sp_max; local exactly when degree is 1
// - ranks_per_host divides the world; token_budget within kMaxTokens
// - tokens >= 1, their sum is num_tokens; truncated sequences agree with `dropped`
// - token budget kept on every rank of every round (unless feasible is false: then it says so)
// - the issue order runs the phases of each level, or of each of its waves, once; no cut leaves a
// wave empty; sends match receives; the hash is that of the content
std::vector<std::string> find_violations(const Plan& plan);

// Throws BadInput with the first violation.
void check(const Plan& plan);

}  // namespace nsp
