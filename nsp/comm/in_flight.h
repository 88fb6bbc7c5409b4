// Exchanges that a device has not finished, for a thread that asks which one is stuck. (On a CPU
// the host waits itself: see Progress.)
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "nsp/comm/progress.h"

namespace nsp {

// Exchanges finish in the order of their issue. Thread-safe; `finished` holds no tensor, so memory
// does not depend on how often the list is looked at.
class InFlight {
 public:
  struct Oldest {
    std::uint64_t number = 0;  // of all exchanges that were added
    Place place;               // where it was issued
  };

  void add(std::function<bool()> finished, const Place& place);
  // The first that has not finished. Forgets those before it.
  std::optional<Oldest> oldest();

 private:
  struct Entry {
    std::uint64_t number;
    Place place;
    std::function<bool()> finished;
  };

  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::uint64_t next_ = 0;
};

}  // namespace nsp
