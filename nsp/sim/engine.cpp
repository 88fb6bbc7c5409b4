// How the queues move: what starts, what waits, what ends.
#include "nsp/sim/engine.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::int32_t slot_id(const QueueStep& step, std::int32_t rank) {
  return step.first_slot + rank / step.degree;
}

std::int32_t size(const std::vector<QueueStep>& steps) {
  return static_cast<std::int32_t>(steps.size());
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
  return slots_[at(slot_id(step, rank))];
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
        start_fsdp();
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
  const std::int64_t nanoseconds = step.cost(index);
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
  events_.push({.time = now_ + step.cost(slot.first_rank),
                .kind = EventKind::kGroupStep,
                .id = slot_id(step, slot.first_rank)});
}

bool Engine::exchange_moves(std::int32_t index) {
  Rank& rank = ranks_[at(index)];
  if (rank.exchanging || rank.visit == std::ssize(script_.visits) ||
      rank.exchange == size(stage(rank).exchange)) {
    return false;
  }
  const QueueStep& step = stage(rank).exchange[at(rank.exchange)];
  if (step.cost(index) == kPasses) {
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
  const std::int64_t nanoseconds = step.cost(slot.first_rank);
  if (nanoseconds == 0) {
    end_exchange(slot);
    return;
  }
  links_.start_exchange(slot_id(step, slot.first_rank), nanoseconds, now_, events_);
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

}  // namespace nsp
