#include "nsp/cli/plan_file.h"

#include <ostream>
#include <vector>

#include "nsp/base/error.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"

namespace nsp {

std::optional<Plan> load_sound_plan(const std::string& path, Streams streams) {
  Plan plan = parse_plan(read_file(path), path);
  const std::vector<std::string> violations = find_violations(plan);
  if (!violations.empty()) {
    streams.err << "nsp: " << path << ": " << violations.front() << "; see nsp check\n";
    return {};
  }
  return plan;
}

ModelShape model_of(const Plan& plan, const std::string& given) {
  if (given.empty()) {
    for (const ModelShape& preset : model_presets()) {
      if (model_hash(preset) == plan.model_hash) {
        return preset;
      }
    }
    bad_input("--model", "''", "is needed: the plan was made for none of the presets");
  }
  ModelShape shape = find_model(given);
  if (!plan.model_hash.empty() && model_hash(shape) != plan.model_hash) {
    bad_input("--model", given, "is not the model that the plan was made for; name that");
  }
  return shape;
}

}  // namespace nsp
