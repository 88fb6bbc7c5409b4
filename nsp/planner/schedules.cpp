#include "nsp/planner/schedules.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nsp/sim/best_order.h"
#include "nsp/sim/simulate.h"

namespace nsp {
namespace {

// Sets schedules of whole levels; gives the rounds with their cuts, if any has one.
std::optional<std::vector<Round>> set_whole(const CostModel& model,
                                            std::span<Round> rounds,
                                            std::int32_t world) {
  std::optional<std::vector<Round>> cut;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    ChosenOrders orders = best_orders(model, rounds[i], world);
    set_order(std::move(orders.whole), rounds[i].schedule);
    if (orders.cut && !cut) {
      cut.emplace(rounds.begin(), rounds.end());
    } else if (cut) {
      (*cut)[i] = rounds[i];
    }
    if (orders.cut) {
      set_order(*std::move(orders.cut), (*cut)[i].schedule);
    }
  }
  return cut;
}

std::int64_t step_of(const StepRules& rules, const std::vector<Round>& rounds) {
  const auto checkpointing = rules.checkpointing ? Checkpointing::kFull : Checkpointing::kNone;
  return simulated_step(*rules.model, *rules.shape, rounds, rules.world, checkpointing);
}

}  // namespace

std::int64_t choose_schedules(const StepRules& rules, std::vector<Round>& rounds) {
  std::optional<std::vector<Round>> cut = set_whole(*rules.model, rounds, rules.world);
  const std::int64_t whole_step = step_of(rules, rounds);
  if (!cut) {
    return whole_step;
  }
  const std::int64_t cut_step = step_of(rules, *cut);
  if (cut_step < whole_step) {
    rounds = *std::move(cut);
  }
  return std::min(whole_step, cut_step);
}

void choose_schedule(const StepRules& rules, Round& round) {
  std::optional<std::vector<Round>> cut = set_whole(*rules.model, {&round, 1}, rules.world);
  if (cut && step_of(rules, *cut) < step_of(rules, {round})) {
    round = std::move(cut->front());
  }
}

}  // namespace nsp
