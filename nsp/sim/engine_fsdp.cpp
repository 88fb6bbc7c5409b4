// FSDP operations: one after the other over the whole world, each once every rank has asked for it.
#include "nsp/sim/engine.h"

namespace nsp {

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
    } else {
      end_fsdp();
    }
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
