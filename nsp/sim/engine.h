// Plays a script event by event: two queues a rank, joint steps that wait for their group, one FSDP
// operation at a time over the whole world. Exact and deterministic: integer nanoseconds, and no
// event's place among others of the same moment changes a time.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/events.h"
#include "nsp/sim/links.h"
#include "nsp/sim/script.h"
#include "nsp/sim/timeline.h"

namespace nsp {

struct EngineOptions {
  bool spans = false;        // keep every span; then every visit is played
  bool skip_periods = true;  // leap over visits that repeat exactly (engine_period.cpp)
};

class Engine {
 public:
  static constexpr std::int64_t kNotStarted = -1;

  // Borrows the script. Every stage's last compute step waits for all its exchanges.
  Engine(const Script& script, const EngineOptions& options);

  // Step, ranks, slowest and spans of the timeline; memory is not the engine's.
  Timeline play();

 private:
  struct Rank {
    std::int32_t visit = 0;
    std::int32_t compute = 0;      // steps of the visit that are done or passed
    std::int32_t exchange = 0;     // steps of the visit that are done or passed
    bool computing = false;        // or waiting in a joint compute step
    bool exchanging = false;       // or waiting in an exchange
    std::int64_t compute_end = 0;  // or kNotStarted: waits in a joint step
    std::int64_t free_since = 0;   // of the compute queue, and what had been in flight by then:
    std::int64_t exchanged_then = 0;
    std::int64_t fsdp_then = 0;
    std::int32_t asked = 0;  // FSDP operations
  };
  // A group's place in a joint step.
  struct Slot {
    const QueueStep* step = nullptr;
    std::int32_t first_rank = 0;
    std::int32_t arrived = 0;
    std::int64_t start = 0;
  };
  struct Moment {
    std::int32_t visit = 0;
    std::int64_t time = 0;
    std::vector<std::int64_t> state;
    std::vector<Breakdown> ranks;
  };

  const Stage& stage(const Rank& rank) const;
  Slot& slot_of(const QueueStep& step, std::int32_t rank);

  void handle(const Event& event);
  void settle();  // lets every rank in ready_ go as far as it can
  bool compute_moves(std::int32_t rank);
  bool exchange_moves(std::int32_t rank);
  void start_group(Slot& slot);
  void start_exchange(Slot& slot);
  void end_exchange(Slot& slot);
  void end_compute(std::int32_t rank);

  // engine_fsdp.cpp
  void ask(std::int32_t rank, std::int32_t operations);
  void start_fsdp();
  void end_fsdp();
  void keep_fsdp_spans();

  // engine_book.cpp
  void book_idle(std::int32_t rank, bool for_fsdp);
  void book(std::int32_t rank, const QueueStep& step);
  void keep_span(
      const QueueStep& step, std::int32_t rank, Queue queue, std::int64_t begin, std::int64_t end);

  // engine_period.cpp
  void look_for_period(std::int32_t visit);
  std::vector<std::int64_t> state(std::int32_t visit) const;
  std::int32_t spare_visits(std::int32_t visit) const;
  void leap(const Moment& before, std::int32_t visit, std::int32_t periods);
  void recount();

  const Script& script_;
  EngineOptions options_;
  std::int64_t now_ = 0;
  std::int64_t leapt_ = 0;  // nanoseconds of skipped visits
  Events events_;
  std::vector<Rank> ranks_;
  std::vector<Slot> slots_;
  Links links_;
  std::vector<std::int32_t> ready_;
  std::vector<std::int32_t> asked_;  // by FSDP operation: ranks
  std::int32_t fsdp_done_ = 0;
  std::int64_t fsdp_start_ = 0;
  std::vector<std::int32_t> begun_;  // by visit: ranks
  std::int32_t boundary_ = -1;       // the visit that the last rank has just begun
  std::vector<Moment> history_;
  Timeline timeline_;
};

}  // namespace nsp
