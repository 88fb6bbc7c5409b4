// A plan file that a command works on.
#pragma once

#include <optional>
#include <string>

#include "nsp/cli/commands.h"
#include "nsp/plan/plan.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// The plan; none when it breaks a rule: the first one is then on streams.err, and the command ends
// with 1. Throws BadInput for a file that is no plan.
std::optional<Plan> load_sound_plan(const std::string& path, Streams streams);

// The plan's model by preset name or file, the preset it was made for when `given` is empty. Throws
// BadInput when it is not the plan's.
ModelShape model_of(const Plan& plan, const std::string& given);

}  // namespace nsp
