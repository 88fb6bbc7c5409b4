#include "nsp/sim/simulate.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "nsp/cli/output.h"
#include "nsp/cli/plan_file.h"
#include "nsp/cost/make_profile.h"
#include "nsp/sim/memory.h"
#include "nsp/sim/timeline_text.h"
#include "nsp/sim/trace.h"

namespace nsp {
namespace {

Json settings_json(const SimulateCommand& options) {
  return {{"checkpoint", options.checkpoint},
          {"ep", options.ep},
          {"overlap", !options.serial},
          {"fsdp", !options.without_fsdp}};
}

std::string heading(const Plan& plan, const SimulateCommand& options) {
  return fmt::format("plan {} by {}: {} ranks, {} round{}, {} tokens; checkpoint {}{}{}\n",
                     plan.hash,
                     plan.planner,
                     plan.world,
                     plan.rounds.size(),
                     plan.rounds.size() == 1 ? "" : "s",
                     plan.num_tokens,
                     options.checkpoint,
                     options.serial ? ", serial" : "",
                     options.without_fsdp ? ", without FSDP" : "");
}

// What to do about a step that does not fit.
std::string advice(const Plan& plan, const ModelShape& shape, const SimulateCommand& options) {
  if (options.checkpoint != "none") {
    return "";
  }
  const auto most = std::ranges::max(memory_bytes(plan, shape, Checkpointing::kFull));
  return fmt::format("with --checkpoint full: {:.1f} GiB\n",
                     static_cast<double>(most) / (std::int64_t{1} << 30));
}

bool is_marked(const Plan& plan) {
  return std::ranges::any_of(plan.rounds, [](const Round& round) {
    return std::ranges::any_of(round.placements, [](const Placement& placement) {
      return placement.mark != Mark::kRecompute;
    });
  });
}

}  // namespace

int run_simulate(const SimulateCommand& options, Streams streams) {
  check_writable("--trace", options.trace);
  check_writable("--json", options.json);
  const std::optional<Plan> loaded = load_sound_plan(options.plan, streams);
  if (!loaded) {
    return 1;
  }
  const Plan& plan = *loaded;
  const ModelShape shape = model_of(plan, options.model);
  const Profile profile = find_profile(shape, options.profile);
  const Timeline timeline = simulate(plan,
                                     shape,
                                     profile,
                                     {.fsdp = !options.without_fsdp,
                                      .overlap = !options.serial,
                                      .checkpointing = parse_checkpointing(options.checkpoint),
                                      .ep = options.ep,
                                      .spans = !options.trace.empty()});
  if (!plan.profile_hash.empty() && profile_hash(profile) != plan.profile_hash) {
    streams.err << "nsp: note: profile " << options.profile
                << " is not the one the plan was made with; the plan may not be the best for it\n";
  }
  if (is_marked(plan) && options.checkpoint != "marks") {
    streams.err << "nsp: note: the plan's marks are not played; --checkpoint marks plays them\n";
  }
  if (!options.trace.empty()) {
    save_trace(timeline, options.trace);
  }
  Json json = to_json(timeline);
  json["plan"] = plan.hash;
  json["settings"] = settings_json(options);
  write_result(options.json,
               json,
               heading(plan, options) + summary(timeline) + advice(plan, shape, options),
               streams);
  return 0;
}

}  // namespace nsp
