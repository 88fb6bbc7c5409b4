// A plan for people.
#pragma once

#include <string>

#include "nsp/plan/plan.h"

namespace nsp {

// A table: settings, rounds, nodes by degree (sequences, tokens, lengths), tokens a rank, load,
// bound, gap, planning time; leaves that run first, levels that are cut; what was dropped.
std::string summary(const Plan& plan);

// Where each length class (up to 1K, 1K-4K, ...) went, by degree and backend, with tokens and
// share.
std::string explanation(const Plan& plan);

}  // namespace nsp
