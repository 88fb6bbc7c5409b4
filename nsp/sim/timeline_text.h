// A timeline for people and for programs.
#pragma once

#include <string>

#include "nsp/base/json.h"
#include "nsp/sim/timeline.h"

namespace nsp {

// A table: step, where the time goes (mean over the ranks, slowest rank), memory.
std::string summary(const Timeline& timeline);

// step_seconds, mean, slowest and its rank, memory_bytes; without spans.
Json to_json(const Timeline& timeline);

}  // namespace nsp
