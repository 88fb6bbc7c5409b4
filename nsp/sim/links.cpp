#include "nsp/sim/links.h"

#include <algorithm>

namespace nsp {

Links::Links(std::int32_t world, std::int32_t slots)
    : jobs_(at(slots)),
      exchanged_(at(world), 0),
      exchanging_since_(at(world), -1),
      exchanged_before_(at(world), 0) {}

void Links::start_exchange(std::int32_t slot,
                           std::int64_t nanoseconds,
                           std::int64_t now,
                           Events& events) {
  Job& job = jobs_[at(slot)];
  job.units = 2 * nanoseconds;
  job.since = now;
  job.place = flying_.size();
  flying_.push_back(slot);
  schedule(slot, events);
}

void Links::schedule(std::int32_t slot, Events& events) {
  Job& job = jobs_[at(slot)];
  ++job.version;
  events.push({.time = job.since + (job.units + speed() - 1) / speed(),
               .kind = EventKind::kExchange,
               .id = slot,
               .version = job.version});
}

bool Links::end_exchange(const Event& event) {
  Job& job = jobs_[at(event.id)];
  if (job.since < 0 || job.version != event.version) {
    return false;
  }
  job.since = -1;
  flying_[job.place] = flying_.back();
  jobs_[at(flying_[job.place])].place = job.place;
  flying_.pop_back();
  return true;
}

void Links::rank_ends(std::int32_t rank, std::int64_t now) {
  exchanged_[at(rank)] += now - exchanging_since_[at(rank)];
  exchanging_since_[at(rank)] = -1;
}

std::int64_t Links::exchanged(std::int32_t rank, std::int64_t now) const {
  const std::int64_t since = exchanging_since_[at(rank)];
  return exchanged_[at(rank)] + (since < 0 ? 0 : now - since);
}

void Links::change_speed(std::int64_t old_speed, std::int64_t now, Events& events) {
  for (const std::int32_t slot : flying_) {
    Job& job = jobs_[at(slot)];
    job.units = std::max<std::int64_t>(0, job.units - old_speed * (now - job.since));
    job.since = now;
    schedule(slot, events);
  }
}

void Links::start_fsdp(std::int64_t nanoseconds, std::int64_t now, Events& events) {
  for (std::int32_t rank = 0; at(rank) < exchanged_.size(); ++rank) {
    exchanged_before_[at(rank)] = exchanged(rank, now);
  }
  fsdp_since_ = now;
  fsdp_nanoseconds_ = nanoseconds;
  change_speed(2, now, events);
  events.push({.time = now + nanoseconds, .kind = EventKind::kFsdp, .version = ++fsdp_version_});
}

// The earliest end that is possible after what has been exchanged until now.
std::int64_t Links::fsdp_end(std::int64_t now) const {
  std::int64_t shared = 0;
  for (std::int32_t rank = 0; at(rank) < exchanged_.size(); ++rank) {
    shared = std::max(shared, exchanged(rank, now) - exchanged_before_[at(rank)]);
  }
  return fsdp_since_ + fsdp_nanoseconds_ + (shared + 1) / 2;
}

bool Links::end_fsdp(const Event& event, Events& events) {
  if (!fsdp_in_flight() || event.version != fsdp_version_) {
    return false;
  }
  const std::int64_t end = fsdp_end(event.time);
  if (end > event.time) {
    events.push({.time = end, .kind = EventKind::kFsdp, .version = ++fsdp_version_});
    return false;
  }
  fsdp_busy_ += event.time - fsdp_since_;
  fsdp_since_ = -1;
  change_speed(1, event.time, events);
  return true;
}

std::int64_t Links::fsdp_busy(std::int64_t now) const {
  return fsdp_busy_ + (fsdp_in_flight() ? now - fsdp_since_ : 0);
}

void Links::append_state(std::int64_t now, std::vector<std::int64_t>& state) const {
  for (std::size_t slot = 0; slot < jobs_.size(); ++slot) {
    const Job& job = jobs_[slot];
    if (job.since >= 0) {
      state.insert(state.end(),
                   {static_cast<std::int64_t>(slot), job.units - speed() * (now - job.since)});
    }
  }
  if (fsdp_in_flight()) {
    state.insert(state.end(), {now - fsdp_since_, fsdp_nanoseconds_});
    for (std::int32_t rank = 0; at(rank) < exchanged_.size(); ++rank) {
      state.push_back(exchanged(rank, now) - exchanged_before_[at(rank)]);
    }
  }
}

}  // namespace nsp
