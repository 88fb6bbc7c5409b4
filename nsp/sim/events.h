// What happens next: events by time, then kind, then id, so that no order of insertion matters.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace nsp {

// The place of a rank, slot, visit or operation in its vector.
inline std::size_t at(std::int32_t id) {
  return static_cast<std::size_t>(id);
}

enum class EventKind : std::uint8_t { kRankStep, kGroupStep, kExchange, kFsdp };

struct Event {
  std::int64_t time = 0;
  EventKind kind = EventKind::kRankStep;
  std::int32_t id = 0;       // rank, or slot of a group
  std::int32_t version = 0;  // exchanges and FSDP: an older one than the current is void

  auto operator<=>(const Event&) const = default;
};

using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

}  // namespace nsp
