#include "nsp/comm/in_flight.h"

#include <utility>

namespace nsp {
namespace {

constexpr std::size_t kMost = 4096;  // when nobody looks

}  // namespace

void InFlight::add(std::function<bool()> finished, const Place& place) {
  const std::scoped_lock lock(mutex_);
  if (entries_.size() == kMost) {
    entries_.pop_front();
  }
  entries_.push_back({next_++, place, std::move(finished)});
}

std::optional<InFlight::Oldest> InFlight::oldest() {
  const std::scoped_lock lock(mutex_);
  while (!entries_.empty() && entries_.front().finished()) {
    entries_.pop_front();
  }
  if (entries_.empty()) {
    return std::nullopt;
  }
  return Oldest{entries_.front().number, entries_.front().place};
}

}  // namespace nsp
