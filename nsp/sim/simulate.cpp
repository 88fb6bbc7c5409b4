#include "nsp/sim/simulate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/sim/engine.h"
#include "nsp/sim/memory.h"

namespace nsp {
namespace {

std::int32_t add(Script& script, Stage stage) {
  script.stages.push_back(std::move(stage));
  return static_cast<std::int32_t>(script.stages.size()) - 1;
}

void add_round(Script& script, RoundStages stages, std::int32_t round, std::int32_t layers) {
  const std::int32_t forward = add(script, std::move(stages.forward));
  const std::int32_t head = add(script, std::move(stages.head));
  const std::int32_t backward = add(script, std::move(stages.backward));
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    script.visits.push_back({.stage = forward, .round = round, .layer = layer});
  }
  script.visits.push_back({.stage = head, .round = round});
  for (std::int32_t layer = layers; layer-- > 0;) {
    script.visits.push_back({.stage = backward, .round = round, .layer = layer});
  }
}

Script make_script(const Plan& plan,
                   const CostModel& model,
                   const ModelShape& shape,
                   const SimulateOptions& options) {
  Script script{.world = plan.world};
  const StageOptions stages{.overlap = options.overlap, .checkpointing = options.checkpointing};
  for (std::size_t round = 0; round < plan.rounds.size(); ++round) {
    add_round(script,
              make_stages(model, plan.rounds[round], plan.world, stages),
              static_cast<std::int32_t>(round),
              static_cast<std::int32_t>(shape.layers));
  }
  if (!plan.rounds.empty()) {
    const std::int32_t stage = add(script, optimizer_stage(model, plan.world));
    script.visits.push_back(
        {.stage = stage, .round = static_cast<std::int32_t>(plan.rounds.size()) - 1});
  }
  const FsdpTimes fsdp{.gather = model.gather(plan.world), .scatter = model.scatter(plan.world)};
  add_fsdp(script, options.fsdp ? &fsdp : nullptr);
  number_slots(script);
  return script;
}

}  // namespace

Timeline simulate(const Plan& plan,
                  const ModelShape& shape,
                  const Profile& profile,
                  const SimulateOptions& options) {
  if (options.ep < 1 || plan.world % options.ep != 0) {
    bad_input(
        "ep", options.ep, "must divide the world of " + std::to_string(plan.world) + " ranks");
  }
  const CostModel model(shape, profile, plan.ranks_per_host, options.ep);
  const Script script = make_script(plan, model, shape, options);
  Timeline timeline =
      Engine(script, {.spans = options.spans, .skip_periods = !options.every_layer}).play();
  const std::vector<std::int64_t> bytes = memory_bytes(plan, shape, options.checkpointing);
  const auto most = std::ranges::max_element(bytes);
  timeline.memory_bytes = *most;
  timeline.memory_rank = static_cast<std::int32_t>(most - bytes.begin());
  return timeline;
}

Checkpointing parse_checkpointing(const std::string& name) {
  constexpr std::pair<const char*, Checkpointing> kNames[] = {{"none", Checkpointing::kNone},
                                                              {"full", Checkpointing::kFull},
                                                              {"marks", Checkpointing::kMarks}};
  for (const auto& [known, value] : kNames) {
    if (name == known) {
      return value;
    }
  }
  bad_input("checkpoint", "'" + name + "'", "must be none, full or marks");
}

}  // namespace nsp
