#include "nsp/planner/mark_choice.h"

#include <optional>
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
  // Saving little can slow a step: backward's first exchange of a saved level carries more.
  mark_recompute(plan, model, {});
  Plan best = plan;
  std::optional<std::int64_t> least;  // step; played once something is marked
  for (const auto order : {MarkOrder::kSecondsPerByte, MarkOrder::kTree}) {
    Plan marked = plan;
    rule.order = order;
    mark_recompute(marked, model, rule);
    if (marked.hash == plan.hash || marked.hash == best.hash) {
      continue;  // nothing fits, or both mark alike
    }
    least = least ? *least : step_of(plan, model, shape);
    const std::int64_t found = step_of(marked, model, shape);
    if (found < *least) {
      best = std::move(marked);
      least = found;
    }
  }
  plan = std::move(best);
}

}  // namespace nsp
