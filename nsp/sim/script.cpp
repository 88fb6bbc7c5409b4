#include "nsp/sim/script.h"

namespace nsp {
namespace {

void ask(Script& script, std::size_t visit, std::int64_t nanoseconds, bool scatter) {
  script.fsdp.push_back(
      {.nanoseconds = nanoseconds, .scatter = scatter, .visit = static_cast<std::int32_t>(visit)});
}

std::int32_t asked(const Script& script) {
  return static_cast<std::int32_t>(script.fsdp.size());
}

}  // namespace

void add_fsdp(Script& script, const FsdpTimes* times) {
  if (times == nullptr) {
    return;
  }
  const auto stage = [&](std::size_t v) -> const Stage& {
    return script.stages[static_cast<std::size_t>(script.visits[v].stage)];
  };
  const auto gather = [&](std::size_t v) {
    if (v < script.visits.size() && stage(v).gathers) {
      ask(script, v, times->gather, false);
      script.visits[v].fsdp_before = asked(script);
    }
  };
  gather(0);
  script.asked_at_start = asked(script);
  for (std::size_t v = 0; v < script.visits.size(); ++v) {
    gather(v + 1);
    script.visits[v].asked_at_begin = asked(script);
    if (stage(v).scatters) {
      ask(script, v, times->scatter, true);
    }
    script.visits[v].asked_at_end = asked(script);
  }
  for (std::size_t v = 0; v < script.visits.size(); ++v) {
    if (stage(v).last) {
      script.visits[v].fsdp_before = asked(script);
    }
  }
}

void number_slots(Script& script) {
  script.slots = 0;
  for (Stage& stage : script.stages) {
    for (auto* queue : {&stage.compute, &stage.exchange}) {
      for (QueueStep& step : *queue) {
        if (step.joint) {
          step.first_slot = script.slots;
          script.slots += static_cast<std::int32_t>(step.nanoseconds.size());
        }
      }
    }
  }
}

}  // namespace nsp
