#include "nsp/plan/make_plan.h"

#include <algorithm>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

void check_settings(const PlanSettings& settings) {
  check_tree(settings.world, settings.sp_max);
  if (settings.ranks_per_host < 1 || settings.world % settings.ranks_per_host != 0) {
    bad_input("ranks_per_host",
              settings.ranks_per_host,
              "must divide the world of " + std::to_string(settings.world) + " ranks");
  }
  if (settings.token_budget < 0 || settings.token_budget > kMaxTokens) {
    bad_input("token_budget",
              settings.token_budget,
              "must be from 1 to " + std::to_string(kMaxTokens) + ", or 0 for no limit");
  }
}

std::string name_of(const Placement& placement) {
  return "sequence " + std::to_string(placement.sequence);
}

void check_placement(const Placement& placement, const PlanSettings& settings) {
  if (!is_node(placement.node, settings.world, settings.sp_max)) {
    bad_input(name_of(placement) + ": node",
              "(first_rank " + std::to_string(placement.node.first_rank) + ", degree " +
                  std::to_string(placement.node.degree) + ")",
              "must be an aligned power of two up to sp_max inside the world");
  }
  if (placement.ulysses_degree < 1 || placement.node.degree % placement.ulysses_degree != 0) {
    bad_input(name_of(placement) + ": ulysses_degree",
              placement.ulysses_degree,
              "must divide the degree, " + std::to_string(placement.node.degree));
  }
  if (placement.sequence < 0) {
    bad_input("sequence", placement.sequence, "must be an index from 0");
  }
  if (placement.tokens < 1 || placement.tokens > kMaxTokens) {
    bad_input(name_of(placement) + ": tokens",
              placement.tokens,
              "must be from 1 to " + std::to_string(kMaxTokens));
  }
}

Round make_round(std::vector<Placement> placements, const PlanSettings& settings) {
  Round round{.placements = std::move(placements)};
  for (const Placement& placement : round.placements) {
    check_placement(placement, settings);
  }
  std::ranges::stable_sort(round.placements, {}, &Placement::sequence);
  set_default_schedule(round, settings.world);
  return round;
}

}  // namespace

Placement place(std::int64_t sequence, std::int64_t tokens, const Node& node) {
  return place(sequence, tokens, node.first_rank, head_split(node.degree));
}

Placement place(std::int64_t sequence,
                std::int64_t tokens,
                std::int32_t first_rank,
                const Way& way) {
  return {.sequence = sequence,
          .tokens = tokens,
          .node = {.first_rank = first_rank, .degree = way.degree},
          .backend = way.backend,
          .ulysses_degree = way.ulysses_degree};
}

Plan make_plan(const PlanSettings& settings,
               std::vector<std::vector<Placement>> rounds,
               std::vector<Dropped> dropped,
               const ScheduleRule& schedule) {
  check_settings(settings);
  Plan plan{.world = settings.world,
            .ranks_per_host = settings.ranks_per_host,
            .sp_max = settings.sp_max,
            .token_budget = settings.token_budget,
            .planner = settings.planner,
            .effort = settings.effort,
            .dropped = std::move(dropped),
            .model_hash = settings.model_hash,
            .profile_hash = settings.profile_hash};
  plan.num_sequences = std::ranges::count(plan.dropped, 0, &Dropped::kept);
  for (std::vector<Placement>& placements : rounds) {
    plan.rounds.push_back(make_round(std::move(placements), settings));
    if (schedule) {
      schedule(plan.rounds.back(), plan.rounds.size() - 1);
    }
    for (const Placement& placement : plan.rounds.back().placements) {
      ++plan.num_sequences;
      plan.num_tokens += placement.tokens;
    }
    const std::vector<std::int64_t> tokens = rank_tokens(plan.rounds.back(), plan.world);
    plan.predicted.tokens_max = std::max(plan.predicted.tokens_max, std::ranges::max(tokens));
  }
  if (plan.token_budget == 0) {
    plan.token_budget = plan.predicted.tokens_max;
  }
  plan.feasible = plan.predicted.tokens_max <= plan.token_budget;
  seal(plan);
  return plan;
}

void seal(Plan& plan) {
  plan.hash = plan_hash(plan);
}

}  // namespace nsp
