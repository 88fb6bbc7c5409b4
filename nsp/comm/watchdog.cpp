#include "nsp/comm/watchdog.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace nsp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestPause{50};
constexpr milliseconds kLongestPause{2000};
constexpr milliseconds kSilence{60000};
constexpr std::int32_t kMostSeen = 256;
constexpr const char* kRemedy =
    "look at the logs of those ranks (`py-spy dump` shows where one is), or raise timeout of "
    "nsp.init if they are only slow";

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A sign of life is a count and a place; last words start with a letter.
bool is_last_words(const std::string& beat) {
  return beat == "closed" || beat == "left";
}
bool waits_alike(const Place& a, const Place& b) {
  return a.step == b.step && a.call == b.call && a.inside;
}
Place place_of(const std::string& beat) {
  return decode_place(beat.substr(std::min(beat.size(), beat.find(' ') + 1)));
}

}  // namespace

Watchdog::Watchdog(Communicator& communicator, Board board, milliseconds limit, End end)
    : communicator_(communicator),
      board_(std::move(board)),
      limit_(limit),
      pause_(std::clamp(limit / 20, kShortestPause, kLongestPause)),
      silence_(std::min(limit, kSilence)),
      end_(std::move(end)),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  stop("left");
}

std::string Watchdog::self() const {
  return fmt::format("rank {} of {}", communicator_.rank(), communicator_.size());
}

void Watchdog::run() {
  while (!ended_) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, pause_, [this] { return stopped_; })) {
      return;
    }
    lock.unlock();
    const std::scoped_lock board_lock(board_mutex_);
    if (reported_) {
      return;
    }
    look(Clock::now());
  }
}

// A store that is gone tells nothing: its host may simply have ended first. Then only this rank's
// own waits are judged.
void Watchdog::look(Clock::time_point now) {
  const std::optional<Wait> wait = longest_wait(now);
  const Place here = communicator_.progress.place();
  try {
    if (const auto failure = board_.failure()) {
      ended_ = true;
      if (*failure == own_failure_) {
        end_(own_failure_, true);
      } else {
        end_(fmt::format("{} ends in {}, because {}", self(), describe(here), *failure), false);
      }
      return;
    }
    board_.beat(fmt::format("{} {}", ++beats_, encode(here)));
    watch_neighbour(now);
  } catch (const std::exception&) {
  }
  if (wait) {
    judge(*wait);
  }
}

// The host's own wait, or the device's oldest unfinished exchange.
std::optional<Watchdog::Wait> Watchdog::longest_wait(Clock::time_point now) {
  std::optional<Wait> longest;
  const Place here = communicator_.progress.place();
  const Clock::duration same = host_.update(communicator_.progress.changes() + 1, now);
  if (here.waiting) {
    longest = {here, same};
  } else if (here.failed && same >= 4 * pause_) {
    fail("its exchanges are out of step after an exception, see its log");
  }
  if (const auto oldest = communicator_.in_flight.oldest()) {
    const Clock::duration length = device_.update(oldest->number + 1, now);
    if (!longest || length > longest->length) {
      longest = {oldest->place, length};
    }
  }
  return longest;
}

void Watchdog::judge(const Wait& wait) {
  std::string cause;
  if (wait.length >= limit_) {
    cause = others_of(wait.place) + kRemedy;
  } else if (wait.length >= 3 * pause_) {
    try {
      cause = board_.lost().value_or("");
    } catch (const std::exception&) {
    }
  }
  if (cause.empty()) {
    return;
  }
  const std::string text = fmt::format("{} has waited {:.0f} s in {}: {}",
                                       self(),
                                       seconds(wait.length),
                                       describe(wait.place),
                                       cause);
  std::string first = text;
  try {
    first = board_.fail(text);
  } catch (const std::exception&) {
  }
  ended_ = true;
  end_(text, first == text);
}

// Which ranks do not wait in the same exchange: those of the node, or (a transport may need all)
// the first of the world.
std::string Watchdog::others_of(const Place& place) {
  const auto elsewhere = [&](std::int32_t begin, std::int32_t end) {
    std::string text;
    for (std::int32_t rank = begin; rank < end; ++rank) {
      text += rank == communicator_.rank() ? "" : last_seen(rank, place);
    }
    return text;
  };
  const std::int32_t begin = communicator_.rank() / place.degree * place.degree;
  const std::int32_t size = communicator_.size();
  const std::string text = elsewhere(begin, std::min(begin + place.degree, size));
  return text.empty() ? elsewhere(0, std::min(kMostSeen, size)) : text;
}

std::string Watchdog::last_seen(std::int32_t rank, const Place& place) {
  try {
    const auto beat = board_.last_beat(rank);
    if (beat && is_last_words(*beat)) {
      return fmt::format("rank {} has ended; ", rank);
    }
    if (beat && waits_alike(place_of(*beat), place)) {
      return "";
    }
    return beat ? fmt::format("rank {} was last seen in {}; ", rank, describe(place_of(*beat)))
                : fmt::format("rank {} was never seen; ", rank);
  } catch (const std::exception&) {
    return "";
  }
}

// Silence counts while this thread looks: a store that stalls holds up the neighbour's signs too.
void Watchdog::watch_neighbour(Clock::time_point now) {
  watched_ += std::min(now - last_look_, 2 * pause_);
  last_look_ = now;
  const std::int32_t rank = (communicator_.rank() + 1) % communicator_.size();
  const std::string beat = board_.last_beat(rank).value_or("closed");
  const Clock::duration silent = neighbour_.update(beat, watched_);
  if (beat == "closed") {
    return;
  }
  if (beat == "left") {
    board_.lose(fmt::format("rank {} has ended before its work was done", rank));
    return;
  }
  if (silent >= silence_) {
    const std::string text = fmt::format(
        "rank {} has given no sign of life for {:.0f} s (killed, or its host is gone); it was last "
        "seen in {}",
        rank,
        seconds(silent),
        describe(place_of(beat)));
    board_.lose(text);
    if (silent >= limit_) {
      board_.fail(text);
    }
  }
}

void Watchdog::fail(const std::string& why) {
  try {
    if (own_failure_.empty()) {
      own_failure_ =
          fmt::format("{} failed in {}: {}", self(), describe(communicator_.progress.place()), why);
      board_.fail(own_failure_);
    }
  } catch (const std::exception&) {
  }
}

std::string Watchdog::report(const std::string& why) {
  const std::scoped_lock lock(board_mutex_);
  reported_ = true;
  fail(why);
  try {
    return board_.failure().value_or(own_failure_);
  } catch (const std::exception&) {
    return own_failure_;
  }
}

void Watchdog::stop(const std::string& last_words) {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
  try {
    board_.beat(last_words);
  } catch (const std::exception&) {
  }
}

}  // namespace nsp
