#include "nsp/comm/pull_schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "nsp/base/error.h"

namespace nsp {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kMostPlaces = 64;  // a lap: bounds what is remembered

}  // namespace

PullSchedule::PullSchedule(std::int32_t first_rank,
                           std::int32_t size,
                           std::int32_t rank,
                           std::int64_t capacity)
    : first_rank_(first_rank),
      rank_(rank),
      capacity_(capacity),
      pairs_(static_cast<std::size_t>(size)) {}

std::int64_t PullSchedule::bytes(std::int64_t rows, std::int64_t row_bytes) {
  return (rows * row_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void PullSchedule::restart() {
  next_ = 0;
  this_lap_ = 0;
}

Staging PullSchedule::stage(const Route& route, std::int64_t row_bytes) {
  const std::int64_t needed = bytes(route.most_staged, row_bytes);
  if (needed > capacity_) {
    throw Error(
        fmt::format("peer copies: an exchange of {} bytes does not fit into the arena of {}",
                    needed,
                    capacity_));
  }
  if (next_ + needed > capacity_ || this_lap_ == kMostPlaces) {
    restart();
  }
  latest_ = next_;
  next_ += needed;
  ++this_lap_;
  Staging staging{.offset = latest_, .taken = clear(latest_, next_)};
  Place place{.begin = latest_, .end = next_};
  const std::int32_t me = rank_ - route.first_rank;
  for (std::int32_t receiver = 0; receiver < route.degree; ++receiver) {
    if (receiver != me && route.rows(me, receiver) > 0) {
      const std::int32_t rank = route.first_rank + receiver;
      place.takers.push_back({rank, ++pair(rank).sent});
    }
  }
  if (!place.takers.empty()) {
    places_.push_back(std::move(place));
  }
  return staging;
}

// Forgets the places that [begin, end) touches. A rank takes in the order of exchanges, so the
// latest of its numbers stands for all.
std::vector<Signal> PullSchedule::clear(std::int64_t begin, std::int64_t end) {
  std::vector<Signal> latest;
  const auto touched = [&](const Place& place) { return place.begin < end && begin < place.end; };
  for (const Place& place : places_) {
    for (const Signal& taker : touched(place) ? place.takers : std::vector<Signal>{}) {
      const auto same = std::ranges::find(latest, taker.rank, &Signal::rank);
      if (same == latest.end()) {
        latest.push_back(taker);
      } else {
        same->value = taker.value;
      }
    }
  }
  std::erase_if(places_, touched);
  return latest;
}

Pulling PullSchedule::pull(const Route& route, std::int64_t row_bytes) {
  Pulling pulling;
  const std::int32_t me = rank_ - route.first_rank;
  for (std::int32_t member = 0; member < route.degree; ++member) {
    const std::int32_t rank = route.first_rank + member;
    if (member == me) {
      continue;
    }
    if (route.rows(me, member) > 0) {
      pulling.ready.push_back({rank, pair(rank).sent});
    }
    if (route.rows(member, me) > 0) {
      pulling.sources.push_back({.member = member,
                                 .ready = {rank, ++pair(rank).received},
                                 .offset = latest_ + route.offset(member, me) * row_bytes});
    }
  }
  return pulling;
}

}  // namespace nsp
