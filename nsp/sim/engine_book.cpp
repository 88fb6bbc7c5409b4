// What the ranks' time went into, and the spans.
#include "nsp/sim/engine.h"

namespace nsp {
namespace {

std::int64_t* part_of(Breakdown& rank, Activity activity) {
  switch (activity) {
    case Activity::kAttentionForward:
      return &rank.attention_forward;
    case Activity::kAttentionBackward:
      return &rank.attention_backward;
    case Activity::kRecompute:
      return &rank.recompute;
    case Activity::kDense:
      return &rank.dense;
    case Activity::kHead:
      return &rank.head;
    case Activity::kOptimizer:
      return &rank.optimizer;
    default:
      return nullptr;
  }
}

}  // namespace

// Time in which the compute queue stood still: what it needed was in flight, or others were not
// there yet.
void Engine::book_idle(std::int32_t index, bool for_fsdp) {
  Rank& rank = ranks_[at(index)];
  Breakdown& breakdown = timeline_.ranks[at(index)];
  const std::int64_t idle = now_ - rank.free_since;
  if (idle > 0) {
    const std::int64_t exposed = for_fsdp ? links_.fsdp_busy(now_) - rank.fsdp_then
                                          : links_.exchanged(index, now_) - rank.exchanged_then;
    (for_fsdp ? breakdown.exposed_fsdp : breakdown.exposed_exchange) += exposed;
    breakdown.waiting += idle - exposed;
  }
  rank.free_since = now_;
}

void Engine::book(std::int32_t index, const QueueStep& step) {
  const std::int64_t nanoseconds = step.cost(index);
  if (std::int64_t* part = part_of(timeline_.ranks[at(index)], step.activity)) {
    *part += nanoseconds;
  }
  ranks_[at(index)].compute_end = now_ + nanoseconds;
  keep_span(step, index, Queue::kCompute, now_, now_ + nanoseconds);
}

void Engine::keep_span(
    const QueueStep& step, std::int32_t rank, Queue queue, std::int64_t begin, std::int64_t end) {
  if (!options_.spans || begin == end) {
    return;
  }
  const Visit& visit = script_.visits[at(ranks_[at(rank)].visit)];
  Span span{.rank = rank,
            .queue = queue,
            .activity = step.activity,
            .begin = begin,
            .end = end,
            .round = visit.round,
            .layer = visit.layer,
            .phase = step.phase,
            .backward = step.backward};
  if (!step.backends.empty()) {
    span.degree = step.degree;
    span.backend = step.backends[at(rank / step.degree)];
  }
  timeline_.spans.push_back(span);
}

}  // namespace nsp
