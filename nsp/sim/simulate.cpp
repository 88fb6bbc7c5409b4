#include "nsp/sim/simulate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/cost/evaluate.h"
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

Script make_script(const CostModel& model,
                   const ModelShape& shape,
                   const std::vector<Round>& rounds,
                   std::int32_t world,
                   const SimulateOptions& options) {
  Script script{.world = world};
  const StageOptions stages{.overlap = options.overlap, .checkpointing = options.checkpointing};
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    add_round(script,
              make_stages(model, rounds[round], world, stages),
              static_cast<std::int32_t>(round),
              static_cast<std::int32_t>(shape.layers));
  }
  if (!rounds.empty()) {
    const std::int32_t stage = add(script, optimizer_stage(model, world));
    script.visits.push_back(
        {.stage = stage, .round = static_cast<std::int32_t>(rounds.size()) - 1});
  }
  const FsdpTimes fsdp{.gather = model.gather(world), .scatter = model.scatter(world)};
  add_fsdp(script, options.fsdp ? &fsdp : nullptr);
  number_slots(script);
  return script;
}

}  // namespace

Timeline simulate(const Plan& plan,
                  const ModelShape& shape,
                  const Profile& profile,
                  const SimulateOptions& options) {
  check_world(profile, plan.world);
  check_ep(options.ep, plan.world, shape);
  const CostModel model(shape, profile, plan.ranks_per_host, options.ep);
  const Script script = make_script(model, shape, plan.rounds, plan.world, options);
  Timeline timeline =
      Engine(script, {.spans = options.spans, .skip_periods = !options.every_layer}).play();
  const std::vector<std::int64_t> bytes = memory_bytes(plan, shape, options.checkpointing);
  const auto most = std::ranges::max_element(bytes);
  timeline.memory_bytes = *most;
  timeline.memory_rank = static_cast<std::int32_t>(most - bytes.begin());
  return timeline;
}

std::int64_t simulated_step(const CostModel& model,
                            const ModelShape& shape,
                            const std::vector<Round>& rounds,
                            std::int32_t world,
                            Checkpointing checkpointing) {
  const SimulateOptions options{.checkpointing = checkpointing};
  return Engine(make_script(model, shape, rounds, world, options), {}).play().step;
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
