// A timeline for people's eyes: Chrome trace JSON, as Perfetto (ui.perfetto.dev) and
// chrome://tracing open it. A process a rank, a thread a queue, microseconds.
#pragma once

#include <string>

#include "nsp/sim/timeline.h"

namespace nsp {

// Needs the timeline's spans; their names: "attention forward 8", "prologue backward 2", "gather".
// Same timeline, same bytes.
std::string trace_json(const Timeline& timeline);

// Writes trace_json; gzipped when the path ends in .gz. Throws Error when it cannot be written.
void save_trace(const Timeline& timeline, const std::string& path);

}  // namespace nsp
