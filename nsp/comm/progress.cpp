// The word, from its lowest bit: call 24, round 16, log2 of the degree 6, stage 2, backward,
// inside, waiting, failed.
#include "nsp/comm/progress.h"

#include <array>
#include <bit>
#include <exception>
#include <fmt/format.h>
#include <sstream>

namespace nsp {
namespace {

constexpr int kRoundAt = 24;
constexpr int kDegreeAt = 40;
constexpr int kStageAt = 46;
constexpr std::uint64_t kCallMask = (std::uint64_t{1} << 24) - 1;
constexpr std::uint64_t kRoundMask = 0xffff;
constexpr std::uint64_t kBackward = std::uint64_t{1} << 48;
constexpr std::uint64_t kInside = std::uint64_t{1} << 49;
constexpr std::uint64_t kWaiting = std::uint64_t{1} << 50;
constexpr std::uint64_t kFailed = std::uint64_t{1} << 51;

Place unpack(std::uint64_t word, std::int64_t step) {
  return {.step = step,
          .round = static_cast<std::int64_t>((word >> kRoundAt) & kRoundMask),
          .call = static_cast<std::int64_t>(word & kCallMask),
          .degree = static_cast<std::int32_t>(1U << ((word >> kDegreeAt) & 31)),
          .stage = static_cast<Stage>((word >> kStageAt) & 3),
          .backward = (word & kBackward) != 0,
          .inside = (word & kInside) != 0,
          .waiting = (word & kWaiting) != 0,
          .failed = (word & kFailed) != 0};
}

std::uint64_t pack(const Place& place) {
  return (static_cast<std::uint64_t>(place.call) & kCallMask) |
         (static_cast<std::uint64_t>(place.round) & kRoundMask) << kRoundAt |
         static_cast<std::uint64_t>(std::countr_zero(static_cast<std::uint32_t>(place.degree)))
             << kDegreeAt |
         static_cast<std::uint64_t>(place.stage) << kStageAt | (place.backward ? kBackward : 0) |
         (place.inside ? kInside : 0) | (place.waiting ? kWaiting : 0) |
         (place.failed ? kFailed : 0);
}

}  // namespace

std::string_view name(Stage stage) {
  constexpr std::array<std::string_view, 4> kNames = {"prologue", "compute", "epilogue", "finish"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string describe(const Place& place) {
  const std::string step = place.step < 0 ? "start-up" : fmt::format("step {}", place.step);
  if (place.call == 0) {
    return step + ", outside attention";
  }
  const std::string stage = fmt::format("round {}, attention call {}, {} {} of level {}",
                                        place.round,
                                        place.call,
                                        place.backward ? "backward" : "forward",
                                        name(place.stage),
                                        place.degree);
  if (place.inside || place.failed) {
    return fmt::format("{}, {}", step, stage);
  }
  return fmt::format("{}, outside attention (last: {})", step, stage);
}

std::string encode(const Place& place) {
  return fmt::format("{} {}", place.step, pack(place));
}

Place decode_place(const std::string& text) {
  std::istringstream in(text);
  std::int64_t step = -1;
  std::uint64_t word = 0;
  return in >> step >> word ? unpack(word, step) : Place{};
}

void Progress::begin_step(std::int64_t step) {
  step_.store(step, std::memory_order_relaxed);
  calls_.store(0, std::memory_order_relaxed);
  word_.store(0, std::memory_order_relaxed);
  go_on();
}

Place Progress::place() const {
  return unpack(word_.load(std::memory_order_relaxed), step_.load(std::memory_order_relaxed));
}

Progress::Pass::Pass(Progress& progress, std::int64_t round, bool backward)
    : progress_(progress),
      base_(pack({.round = round,
                  .call = static_cast<std::int64_t>(
                      progress.calls_.fetch_add(1, std::memory_order_relaxed) + 1),
                  .backward = backward,
                  .inside = true})),
      exceptions_(std::uncaught_exceptions()) {}

void Progress::Pass::enter(Stage stage, std::int32_t degree) {
  const auto log_degree = std::countr_zero(static_cast<std::uint32_t>(degree));
  progress_.word_.store(base_ | static_cast<std::uint64_t>(log_degree) << kDegreeAt |
                            static_cast<std::uint64_t>(stage) << kStageAt,
                        std::memory_order_relaxed);
  progress_.go_on();
}

Progress::Pass::~Pass() {
  progress_.word_.fetch_and(~(kInside | kWaiting), std::memory_order_relaxed);
  if (std::uncaught_exceptions() > exceptions_) {
    progress_.word_.fetch_or(kFailed, std::memory_order_relaxed);
  }
  progress_.go_on();
}

Progress::Waiting::Waiting(Progress& progress) : progress_(progress) {
  progress_.word_.fetch_or(kWaiting, std::memory_order_relaxed);
  progress_.go_on();
}
Progress::Waiting::~Waiting() {
  progress_.word_.fetch_and(~kWaiting, std::memory_order_relaxed);
}

}  // namespace nsp
