// Traffic in flight. An exchange and an FSDP operation that are in flight together share the links
// equally: every exchange runs at half speed while an FSDP operation is in flight; on each rank the
// FSDP operation runs at half speed while that rank exchanges, and it ends when the slowest rank is
// done. Exchanges of different nodes do not share: bandwidth is a rank's.
//
// Remaining work is counted in half nanoseconds, so sharing stays exact.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/events.h"

namespace nsp {

class Links {
 public:
  // `slots`: groups of all exchange steps; one exchange at a time in each, one at a time on a rank.
  Links(std::int32_t world, std::int32_t slots);

  void start_exchange(std::int32_t slot,
                      std::int64_t nanoseconds,
                      std::int64_t now,
                      Events& events);
  // False: the event is void, or the exchange goes on (it was slowed).
  bool end_exchange(const Event& event);
  // Which ranks exchange; the engine tells it rank by rank.
  void rank_starts(std::int32_t rank, std::int64_t now) { exchanging_since_[at(rank)] = now; }
  void rank_ends(std::int32_t rank, std::int64_t now);
  // Nanoseconds that a rank has exchanged until now.
  std::int64_t exchanged(std::int32_t rank, std::int64_t now) const;

  void start_fsdp(std::int64_t nanoseconds, std::int64_t now, Events& events);
  // False: the event is void, or some rank is not done yet.
  bool end_fsdp(const Event& event, Events& events);
  bool fsdp_in_flight() const { return fsdp_since_ >= 0; }
  // Nanoseconds that FSDP operations have been in flight until now.
  std::int64_t fsdp_busy(std::int64_t now) const;

  // All of it relative to now, for comparing two moments.
  void append_state(std::int64_t now, std::vector<std::int64_t>& state) const;

 private:
  struct Job {
    std::int64_t units = 0;   // half nanoseconds left at `since`
    std::int64_t since = -1;  // -1: not in flight
    std::int32_t version = 0;
    std::size_t place = 0;  // in flying_
  };

  std::int64_t speed() const { return fsdp_in_flight() ? 1 : 2; }
  void schedule(std::int32_t slot, Events& events);
  void change_speed(std::int64_t old_speed, std::int64_t now, Events& events);
  std::int64_t fsdp_end(std::int64_t now) const;

  std::vector<Job> jobs_;                       // by slot
  std::vector<std::int32_t> flying_;            // slots, in any order
  std::vector<std::int64_t> exchanged_;         // by rank, of ended exchanges
  std::vector<std::int64_t> exchanging_since_;  // by rank; -1: none
  std::int64_t fsdp_since_ = -1;
  std::int64_t fsdp_nanoseconds_ = 0;
  std::int64_t fsdp_busy_ = 0;
  std::int32_t fsdp_version_ = 0;
  std::vector<std::int64_t> exchanged_before_;  // by rank, when the FSDP operation started
};

}  // namespace nsp
