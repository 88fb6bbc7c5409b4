// Ends a rank that would wait for ever, with one sentence that says where it is and why.
//
// A thread looks every second or two (a twentieth of the limit, two seconds at most):
//
//   an exchange of ours unfinished for the limit    -> this rank ends, and the others hear why
//   the board says that another rank failed         -> this rank ends, wherever it waits
//   a rank ended, or gives no sign of life for a minute (for the limit, if that is less), and an
//   exchange of ours is unfinished                  -> this rank ends, and the others hear why
//   no sign of life of a rank for the limit         -> all end
//
// Time outside our exchanges is not judged: user code may be slow. Each rank watches one other, so
// the store's work grows with the world, not with its square.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "nsp/comm/board.h"
#include "nsp/comm/communicator.h"

namespace nsp {

// What to do when the rank must end; called once, on the watchdog's thread. `first`: the failure is
// this rank's own and was posted before any other.
using End = std::function<void(const std::string& message, bool first)>;

class Watchdog {
 public:
  // The communicator outlives it.
  Watchdog(Communicator& communicator, Board board, std::chrono::milliseconds limit, End end);
  // Says that this rank has left, unless it was closed before. Does not throw.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  Watchdog(Watchdog&&) = delete;
  Watchdog& operator=(Watchdog&&) = delete;

  // The rank's work is done: nobody needs to wait for it any more. Does not throw.
  void close() { stop("closed"); }

  // Tells all ranks of a failure of this one. Returns the sentence about the first failure of any,
  // and from then on leaves this rank to end by itself. Any thread.
  std::string report(const std::string& why);

 private:
  using Clock = std::chrono::steady_clock;
  // Since when something has looked the same.
  template <class Value>
  struct Seen {
    Value value{};
    Clock::time_point since{};
    Clock::duration update(const Value& now_value, Clock::time_point now) {
      if (!(now_value == value)) {
        value = now_value;
        since = now;
      }
      return now - since;
    }
  };
  struct Wait {
    Place place{};
    Clock::duration length{};
  };

  void run();
  void look(Clock::time_point now);
  std::optional<Wait> longest_wait(Clock::time_point now);
  void judge(const Wait& wait);
  void watch_neighbour(Clock::time_point now);
  std::string last_seen(std::int32_t rank, const Place& place);
  std::string others_of(const Place& place);
  void fail(const std::string& why);
  void stop(const std::string& last_words);
  std::string self() const;

  Communicator& communicator_;
  Board board_;
  Clock::duration limit_;
  Clock::duration pause_;
  Clock::duration silence_;
  End end_;
  bool ended_ = false;  // of the watchdog's thread alone
  std::uint64_t beats_ = 0;
  Clock::time_point last_look_{};
  Clock::time_point watched_{};  // a clock that stands still while this thread cannot look
  Seen<std::uint64_t> host_;
  Seen<std::uint64_t> device_;
  Seen<std::string> neighbour_;
  std::mutex board_mutex_;
  std::string own_failure_;  // guarded by board_mutex_
  bool reported_ = false;    // guarded by board_mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace nsp
