#include "nsp/plan/plan_json.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "nsp/base/error.h"
#include "nsp/plan/plan_names.h"

namespace nsp {
namespace {

Json placement_json(const Placement& placement) {
  return {{"sequence", placement.sequence},
          {"tokens", placement.tokens},
          {"first_rank", placement.node.first_rank},
          {"degree", placement.node.degree},
          {"backend", name(placement.backend)},
          {"ulysses_degree", placement.ulysses_degree},
          {"mark", name(placement.mark)}};
}

Json schedule_json(const Schedule& schedule) {
  Json order = Json::array();
  for (const Issue& issue : schedule.order) {
    order.push_back(text_of(issue));
  }
  Json transports = Json::object();
  for (const LevelTransport& level : schedule.transports) {
    transports[std::to_string(level.degree)] = name(level.transport);
  }
  Json json = {{"order", order}, {"leaf_first", schedule.leaf_first}, {"transports", transports}};
  for (const LevelCut& cut :
       schedule.cuts) {  // no cut, no field: as plans were before there were any
    json["cuts"][std::to_string(cut.degree)] = cut.tokens;
  }
  return json;
}

Json round_json(const Round& round) {
  Json placements = Json::array();
  for (const Placement& placement : round.placements) {
    placements.push_back(placement_json(placement));
  }
  return {{"placements", placements}, {"schedule", schedule_json(round.schedule)}};
}

Json dropped_json(const Dropped& dropped) {
  return {{"sequence", dropped.sequence},
          {"tokens", dropped.tokens},
          {"kept", dropped.kept},
          {"why", dropped.why}};
}

Json predicted_json(const Predicted& predicted) {
  return {{"seconds", predicted.seconds},
          {"forward", predicted.forward},
          {"backward", predicted.backward},
          {"tokens_max", predicted.tokens_max},
          {"bytes_max", predicted.bytes_max}};
}

}  // namespace

std::string_view name(Backend backend) {
  return kBackends[static_cast<std::size_t>(backend)];
}
Backend backend_named(std::string_view text) {
  const auto found = std::ranges::find(kBackends, text);
  if (found == std::end(kBackends)) {
    bad_input("backend", text, "must be local, ulysses, gather, ring, usp-ring or usp-gather");
  }
  return static_cast<Backend>(found - std::begin(kBackends));
}
std::string_view name(Mark mark) {
  return kMarks[static_cast<std::size_t>(mark)];
}
std::string_view name(Phase phase) {
  return kPhases[static_cast<std::size_t>(phase)];
}
std::string_view name(Transport transport) {
  return kTransports[static_cast<std::size_t>(transport)];
}

std::string text_of(const Issue& issue) {
  return fmt::format(
      "{}:{}{}", name(issue.phase), issue.degree, issue.wave == Wave::kShort ? kShortWave : "");
}

Json to_json(const Plan& plan) {
  Json rounds = Json::array();
  for (const Round& round : plan.rounds) {
    rounds.push_back(round_json(round));
  }
  Json dropped = Json::array();
  for (const Dropped& entry : plan.dropped) {
    dropped.push_back(dropped_json(entry));
  }
  return {{"format", kFormat},
          {"world", plan.world},
          {"ranks_per_host", plan.ranks_per_host},
          {"sp_max", plan.sp_max},
          {"token_budget", plan.token_budget},
          {"planner", plan.planner},
          {"effort", plan.effort},
          {"feasible", plan.feasible},
          {"num_sequences", plan.num_sequences},
          {"num_tokens", plan.num_tokens},
          {"rounds", rounds},
          {"dropped", dropped},
          {"predicted", predicted_json(plan.predicted)},
          {"bound", {{"seconds", plan.bound_seconds}}},
          {"model_hash", plan.model_hash},
          {"profile_hash", plan.profile_hash},
          {"hash", plan.hash},
          {"planning_ms", plan.planning_ms}};
}

}  // namespace nsp
