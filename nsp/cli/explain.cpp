#include "nsp/plan/explain.h"

#include <fmt/format.h>
#include <iterator>

#include "nsp/base/error.h"
#include "nsp/cli/output.h"
#include "nsp/cli/plan_file.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_text.h"
#include "nsp/planner/marks.h"

namespace nsp {
namespace {

Json to_json(const ClassShare& share) {
  return {{"length", share.length},
          {"degree", share.degree},
          {"backend", name(share.backend)},
          {"sequences", share.sequences},
          {"tokens", share.tokens},
          {"why", share.why}};
}

Json to_json(const LevelSaved& level) {
  return {{"degree", level.degree},
          {"sequences", level.sequences},
          {"saved", level.saved},
          {"offloaded", level.offloaded},
          {"bytes_max", level.bytes_max},
          {"seconds", level.seconds},
          {"seconds_saved", level.seconds_saved}};
}

std::vector<LevelSaved> saved_levels(const Plan& plan, const ExplainOptions& options) {
  const ModelShape shape = model_of(plan, options.model);
  const Profile profile = find_profile(shape, options.profile);
  if (!plan.profile_hash.empty() && profile_hash(profile) != plan.profile_hash) {
    bad_input("--profile", options.profile, "is not the plan's profile; name that");
  }
  const CostModel model(shape, profile, plan.ranks_per_host);
  return saved_by_level(plan, model, saved_token_bytes(shape));
}

std::string saved_table(const std::vector<LevelSaved>& levels) {
  std::string out = "\nattention output kept for backward, one layer; seconds are a rank's mean\n";
  auto to = std::back_inserter(out);
  constexpr const char* kRow = "{:>6} {:>9} {:>9} {:>9} {:>14} {:>12} {:>12}\n";
  fmt::format_to(
      to, kRow, "degree", "sequences", "saved", "on host", "bytes, most", "forward ms", "saved ms");
  for (const LevelSaved& level : levels) {
    fmt::format_to(to,
                   kRow,
                   level.degree,
                   level.sequences,
                   level.saved,
                   level.offloaded,
                   level.bytes_max,
                   fmt::format("{:.3f}", 1e3 * level.seconds),
                   fmt::format("{:.3f}", 1e3 * level.seconds_saved));
  }
  return out;
}

}  // namespace

int run_explain(const ExplainOptions& options, Streams streams) {
  const std::optional<Plan> loaded = load_sound_plan(options.file.plan, streams);
  if (!loaded) {
    return 1;
  }
  const Plan& plan = *loaded;
  Json classes = Json::array();
  for (const ClassShare& share : explain(plan)) {
    classes.push_back(to_json(share));
  }
  Json result = {{"hash", plan.hash}, {"classes", classes}};
  std::string table = explanation(plan);
  if (!options.model.empty()) {
    const std::vector<LevelSaved> levels = saved_levels(plan, options);
    result["saved"] = Json::array();
    for (const LevelSaved& level : levels) {
      result["saved"].push_back(to_json(level));
    }
    table += saved_table(levels);
  }
  write_result(options.file.json, result, table, streams);
  return 0;
}

}  // namespace nsp
