#include "nsp/sim/engine.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

std::int32_t size(const std::vector<QueueStep>& steps) {
  return static_cast<std::int32_t>(steps.size());
}

std::int64_t cost(const QueueStep& step, std::int32_t rank) {
  return step.nanoseconds[at(rank / step.degree)];
}

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

Engine::Engine(const Script& script, const EngineOptions& options)
    : script_(script),
      options_(options),
      ranks_(at(script.world)),
      slots_(at(script.slots)),
      links_(script.world, script.slots),
      asked_(script.fsdp.size(), 0),
      begun_(script.visits.size(), 0) {
  timeline_.ranks.resize(ranks_.size());
  for (const Stage& stage : script.stages) {
    for (const auto* queue : {&stage.compute, &stage.exchange}) {
      for (const QueueStep& step : *queue) {
        for (std::int32_t group = 0; step.joint && group < script.world / step.degree; ++group) {
          slots_[at(step.first_slot + group)] = {.step = &step, .first_rank = group * step.degree};
        }
      }
    }
  }
}

Timeline Engine::play() {
  for (std::int32_t rank = 0; rank < script_.world; ++rank) {
    ready_.push_back(rank);
    ask(rank, script_.asked_at_start);
  }
  settle();
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    handle(event);
    settle();
    if (boundary_ >= 0) {
      look_for_period(boundary_);
      boundary_ = -1;
    }
  }
  timeline_.step = now_ + leapt_;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].visit != std::ssize(script_.visits)) {
      throw Error("simulation: rank " + std::to_string(rank) +
                  " waits for ever; its issue order is not sound (see nsp check)");
    }
    timeline_.ranks[rank].waiting += now_ - ranks_[rank].free_since;
  }
  const auto slowest = std::ranges::min_element(timeline_.ranks, {}, &Breakdown::waiting);
  timeline_.slowest = static_cast<std::int32_t>(slowest - timeline_.ranks.begin());
  std::ranges::sort(timeline_.spans, {}, [](const Span& span) {
    return std::tuple(span.begin, span.rank, span.queue, span.end);
  });
  return std::move(timeline_);
}

const Stage& Engine::stage(const Rank& rank) const {
  return script_.stages[at(script_.visits[at(rank.visit)].stage)];
}

Engine::Slot& Engine::slot_of(const QueueStep& step, std::int32_t rank) {
  return slots_[at(step.first_slot + rank / step.degree)];
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kRankStep:
      end_compute(event.id);
      break;
    case EventKind::kGroupStep:
      for (std::int32_t i = 0; i < slots_[at(event.id)].step->degree; ++i) {
        end_compute(slots_[at(event.id)].first_rank + i);
      }
      break;
    case EventKind::kExchange:
      if (links_.end_exchange(event)) {
        end_exchange(slots_[at(event.id)]);
      }
      break;
    case EventKind::kFsdp:
      if (links_.end_fsdp(event, events_)) {
        end_fsdp();
      }
      break;
  }
}

void Engine::settle() {
  while (!ready_.empty()) {
    const std::int32_t rank = ready_.back();
    ready_.pop_back();
    while (compute_moves(rank) || exchange_moves(rank)) {
    }
  }
}

// True when the rank has passed or done a step of its compute queue without taking time.
bool Engine::compute_moves(std::int32_t index) {
  Rank& rank = ranks_[at(index)];
  if (rank.computing || rank.visit == std::ssize(script_.visits)) {
    return false;
  }
  const QueueStep& step = stage(rank).compute[at(rank.compute)];
  const std::int64_t nanoseconds = cost(step, index);
  if (nanoseconds == kPasses) {
    ++rank.compute;
    return true;
  }
  const bool first = rank.compute == 0;
  if (rank.exchange < step.needs ||
      (first && fsdp_done_ < script_.visits[at(rank.visit)].fsdp_before)) {
    return false;
  }
  book_idle(index, first);
  rank.computing = true;
  if (step.joint) {
    rank.compute_end = kNotStarted;
    start_group(slot_of(step, index));
    return false;
  }
  book(index, step);
  if (nanoseconds == 0) {
    end_compute(index);
    return true;
  }
  events_.push({.time = now_ + nanoseconds, .kind = EventKind::kRankStep, .id = index});
  return false;
}

// One more rank of a joint compute step is there.
void Engine::start_group(Slot& slot) {
  const QueueStep& step = *slot.step;
  if (++slot.arrived < step.degree) {
    return;
  }
  slot.arrived = 0;
  for (std::int32_t rank = slot.first_rank; rank < slot.first_rank + step.degree; ++rank) {
    timeline_.ranks[at(rank)].waiting += now_ - ranks_[at(rank)].free_since;
    book(rank, step);
  }
  events_.push({.time = now_ + cost(step, slot.first_rank),
                .kind = EventKind::kGroupStep,
                .id = step.first_slot + slot.first_rank / step.degree});
}

bool Engine::exchange_moves(std::int32_t index) {
  Rank& rank = ranks_[at(index)];
  if (rank.exchanging || rank.visit == std::ssize(script_.visits) ||
      rank.exchange == size(stage(rank).exchange)) {
    return false;
  }
  const QueueStep& step = stage(rank).exchange[at(rank.exchange)];
  if (cost(step, index) == kPasses) {
    ++rank.exchange;
    return true;
  }
  if (rank.compute < step.needs) {
    return false;
  }
  rank.exchanging = true;
  Slot& slot = slot_of(step, index);
  if (++slot.arrived == step.degree) {
    slot.arrived = 0;
    start_exchange(slot);
  }
  return !rank.exchanging;
}

void Engine::start_exchange(Slot& slot) {
  const QueueStep& step = *slot.step;
  slot.start = now_;
  for (std::int32_t rank = slot.first_rank; rank < slot.first_rank + step.degree; ++rank) {
    links_.rank_starts(rank, now_);
  }
  const std::int64_t nanoseconds = cost(step, slot.first_rank);
  if (nanoseconds == 0) {
    end_exchange(slot);
    return;
  }
  links_.start_exchange(
      step.first_slot + slot.first_rank / step.degree, nanoseconds, now_, events_);
}

void Engine::end_exchange(Slot& slot) {
  for (std::int32_t i = 0; i < slot.step->degree; ++i) {
    const std::int32_t rank = slot.first_rank + i;
    links_.rank_ends(rank, now_);
    keep_span(*slot.step, rank, Queue::kExchange, slot.start, now_);
    ranks_[at(rank)].exchanging = false;
    ++ranks_[at(rank)].exchange;
    ready_.push_back(rank);
  }
}

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
  const std::int64_t nanoseconds = cost(step, index);
  if (std::int64_t* part = part_of(timeline_.ranks[at(index)], step.activity)) {
    *part += nanoseconds;
  }
  ranks_[at(index)].compute_end = now_ + nanoseconds;
  keep_span(step, index, Queue::kCompute, now_, now_ + nanoseconds);
}

void Engine::end_compute(std::int32_t index) {
  Rank& rank = ranks_[at(index)];
  rank.computing = false;
  rank.free_since = now_;
  rank.exchanged_then = links_.exchanged(index, now_);
  rank.fsdp_then = links_.fsdp_busy(now_);
  ready_.push_back(index);
  const Visit& visit = script_.visits[at(rank.visit)];
  if (rank.compute == 0) {
    if (++begun_[at(rank.visit)] == script_.world) {
      boundary_ = rank.visit;
    }
    ask(index, visit.asked_at_begin);
  }
  if (++rank.compute == size(stage(rank).compute)) {
    rank.compute = 0;
    rank.exchange = 0;
    ++rank.visit;
    ask(index, visit.asked_at_end);
  }
}

void Engine::ask(std::int32_t index, std::int32_t operations) {
  Rank& rank = ranks_[at(index)];
  while (rank.asked < operations) {
    ++asked_[at(rank.asked++)];
  }
  start_fsdp();
}

void Engine::start_fsdp() {
  while (!links_.fsdp_in_flight() && fsdp_done_ < std::ssize(script_.fsdp) &&
         asked_[at(fsdp_done_)] == script_.world) {
    fsdp_start_ = now_;
    const std::int64_t nanoseconds = script_.fsdp[at(fsdp_done_)].nanoseconds;
    if (nanoseconds > 0) {
      links_.start_fsdp(nanoseconds, now_, events_);
      return;
    }
    end_fsdp();
  }
}

void Engine::end_fsdp() {
  keep_fsdp_spans();
  ++fsdp_done_;
  for (std::int32_t rank = 0; rank < script_.world; ++rank) {
    if (ranks_[at(rank)].compute == 0 && !ranks_[at(rank)].computing) {
      ready_.push_back(rank);
    }
  }
  start_fsdp();
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

void Engine::keep_fsdp_spans() {
  if (!options_.spans || now_ == fsdp_start_) {
    return;
  }
  const FsdpOperation& operation = script_.fsdp[at(fsdp_done_)];
  const Visit& visit = script_.visits[at(operation.visit)];
  for (std::int32_t rank = 0; rank < script_.world; ++rank) {
    timeline_.spans.push_back(
        {.rank = rank,
         .queue = Queue::kFsdp,
         .activity = operation.scatter ? Activity::kScatter : Activity::kGather,
         .begin = fsdp_start_,
         .end = now_,
         .round = visit.round,
         .layer = visit.layer});
  }
}

}  // namespace nsp
