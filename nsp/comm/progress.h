// Where a rank is in its step: a word that the executor stores at every stage and a count of such
// changes, which the watchdog's thread reads. No clock and no lock on the executor's side.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace nsp {

// finish: waiting for what comes back and writing this rank's rows.
enum class Stage : std::uint8_t { kPrologue, kCompute, kEpilogue, kFinish };
std::string_view name(Stage stage);

struct Place {
  std::int64_t step = -1;  // -1: none has begun
  std::int64_t round = 0;
  std::int64_t call = 0;  // attention passes of this step, this one included; 0: none
  std::int32_t degree = 1;
  Stage stage = Stage::kPrologue;
  bool backward = false;
  bool inside = false;   // in this stage now; otherwise this stage is the last one that was entered
  bool waiting = false;  // the host is in an exchange
  bool failed = false;   // the pass ended with an exception: exchanges are out of step

  bool operator==(const Place&) const = default;
};

// "step 12, round 0, attention call 7, forward prologue of level 4"; outside attention it says so,
// and what the rank did last.
std::string describe(const Place& place);

// As one line of numbers and back; a place that cannot be read is the default one.
std::string encode(const Place& place);
Place decode_place(const std::string& text);

// Written by the thread that runs the model (one at a time), read by any.
class Progress {
 public:
  void begin_step(std::int64_t step);
  Place place() const;
  // How often the rank has gone on: counts steps, stages, ends of passes and waits of the host, so
  // that the same place in another step is told from one that was not left.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

  // One pass of one layer: from its construction to its destruction the rank is inside attention.
  class Pass {
   public:
    Pass(Progress& progress, std::int64_t round, bool backward);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    Pass(Pass&&) = delete;
    Pass& operator=(Pass&&) = delete;
    void enter(Stage stage, std::int32_t degree);

   private:
    Progress& progress_;
    std::uint64_t base_;
    int exceptions_;
  };

  // The host may be blocked in an exchange while it lives.
  class Waiting {
   public:
    explicit Waiting(Progress& progress);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    Waiting(Waiting&&) = delete;
    Waiting& operator=(Waiting&&) = delete;

   private:
    Progress& progress_;
  };

 private:
  void go_on() { changes_.fetch_add(1, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> word_ = 0;
  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<std::int64_t> step_ = -1;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace nsp
