#include "nsp/planner/mark_choice.h"

#include <utility>

#include "nsp/base/error.h"
#include "nsp/sim/simulate.h"

namespace nsp {
namespace {

std::int64_t step_of(const Plan& plan, const CostModel& model, const ModelShape& shape) {
  return simulated_step(model, shape, plan.rounds, plan.world, Checkpointing::kMarks);
}

}  // namespace

std::optional<MarkOrder> parse_mark_order(const std::string& name) {
  if (name == "auto") {
    return std::nullopt;
  }
  if (name == "tree") {
    return MarkOrder::kTree;
  }
  if (name == "seconds-per-byte") {
    return MarkOrder::kSecondsPerByte;
  }
  bad_input("mark_order", "'" + name + "'", "must be auto, tree or seconds-per-byte");
}

void mark_by_better_order(Plan& plan,
                          const CostModel& model,
                          const ModelShape& shape,
                          MarkRule rule) {
  rule.order = MarkOrder::kSecondsPerByte;
  mark_recompute(plan, model, rule);
  Plan by_tree = plan;
  rule.order = MarkOrder::kTree;
  mark_recompute(by_tree, model, rule);
  // Most budgets hold all or nothing of a round: then there is nothing to play.
  if (by_tree.hash != plan.hash && step_of(by_tree, model, shape) < step_of(plan, model, shape)) {
    plan = std::move(by_tree);
  }
}

}  // namespace nsp
