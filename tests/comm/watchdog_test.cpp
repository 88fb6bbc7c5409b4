// Watchdogs of several ranks over one store in one process; what they would end is written down.
#include "nsp/comm/watchdog.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace nsp {
namespace {

using std::chrono::milliseconds;

// Exchanges nothing: only its rank, its progress and its list of exchanges are looked at.
class Still final : public Communicator {
 public:
  Still(std::int32_t rank, std::int32_t size) : rank_(rank), size_(size) {}
  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  std::unique_ptr<Pending> exchange(at::Tensor,
                                    std::vector<std::int64_t>,
                                    std::vector<std::int64_t>,
                                    const Purpose&) override {
    throw std::logic_error("not in this test");
  }

 private:
  std::int32_t rank_;
  std::int32_t size_;
};

struct Ended {
  std::string message;
  bool first = false;
};

class Rank {
 public:
  Rank(const c10::intrusive_ptr<c10d::Store>& store,
       std::int32_t rank,
       std::int32_t size,
       milliseconds limit)
      : communicator(rank, size),
        ended_(promise_.get_future()),
        watchdog(std::make_unique<Watchdog>(
            communicator, Board(store, "test", rank), limit, [this](const std::string& m, bool f) {
              promise_.set_value({m, f});
            })) {
    communicator.progress.begin_step(7);
  }

  // What the watchdog said; empty when it has said nothing within `time`.
  Ended ended(milliseconds time = milliseconds(20000)) {
    return ended_.wait_for(time) == std::future_status::ready ? ended_.get() : Ended{};
  }

  Still communicator;

 private:
  std::promise<Ended> promise_;
  std::future<Ended> ended_;

 public:
  std::unique_ptr<Watchdog> watchdog;
};

struct Two {
  explicit Two(milliseconds limit) : a(store, 0, 2, limit), b(store, 1, 2, limit) {}
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  Rank a;
  Rank b;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr milliseconds kShort{1000};
constexpr milliseconds kLong{60000};

TEST(Watchdog, AWaitOfTheHostEndsAfterTheLimitAndTheOthersHearWhy) {
  Two ranks(kShort);
  Progress::Pass pass(ranks.a.communicator.progress, 0, false);
  pass.enter(Stage::kCompute, 2);
  const Progress::Waiting waiting(ranks.a.communicator.progress);
  const Ended a = ranks.a.ended();
  EXPECT_TRUE(a.first);
  EXPECT_EQ(a.message.find("rank 0 of 2 has waited "), 0U) << a.message;
  EXPECT_TRUE(has(a.message,
                  " s in step 7, round 0, attention call 1, forward compute of level 2: rank 1 was "
                  "last seen in step 7, outside attention; look at"))
      << a.message;
  const Ended b = ranks.b.ended();
  EXPECT_FALSE(b.first);
  EXPECT_TRUE(has(b.message, "rank 1 of 2 ends in step 7, outside attention, because rank 0 of 2"))
      << b.message;
}

TEST(Watchdog, AnExchangeThatTheDeviceNeverFinishesEndsTheRank) {
  Two ranks(kShort);
  const Place place{.step = 7, .call = 4, .degree = 2, .stage = Stage::kEpilogue, .inside = true};
  ranks.b.communicator.in_flight.add([] { return true; }, place);
  ranks.b.communicator.in_flight.add([] { return false; }, place);
  EXPECT_TRUE(has(ranks.b.ended().message, "attention call 4, forward epilogue of level 2"));
}

TEST(Watchdog, TimeOutsideOurExchangesIsNotJudged) {
  Two ranks(kShort);
  Progress::Pass pass(ranks.a.communicator.progress, 0, false);
  pass.enter(Stage::kCompute, 2);  // a long kernel, no wait
  EXPECT_EQ(ranks.a.ended(milliseconds(1500)).message, "");
  EXPECT_EQ(ranks.b.ended(milliseconds(0)).message, "");
}

TEST(Watchdog, ShortWaitsInTheSamePlaceOfEveryStepAreNotOneLongWait) {
  Two ranks(kShort);
  Progress& progress = ranks.a.communicator.progress;
  std::string message;
  for (int step = 0; step < 60 && message.empty(); ++step) {
    progress.begin_step(0);  // the only step of its epoch
    Progress::Pass pass(progress, 0, false);
    pass.enter(Stage::kCompute, 2);
    const Progress::Waiting waiting(progress);
    message = ranks.a.ended(milliseconds(25)).message;
  }
  EXPECT_EQ(message, "");
}

TEST(Watchdog, AReportedFailureEndsTheOthersAndLeavesItsRankAlone) {
  Two ranks(milliseconds(2000));
  EXPECT_EQ(ranks.b.watchdog->report("ValueError: boom"),
            "rank 1 of 2 failed in step 7, outside attention: ValueError: boom");
  EXPECT_TRUE(has(ranks.a.ended().message, "because rank 1 of 2 failed in step 7"));
  EXPECT_EQ(ranks.b.ended(milliseconds(300)).message, "");
  EXPECT_TRUE(has(ranks.a.watchdog->report("a consequence"), "rank 1 of 2 failed"));
}

TEST(Watchdog, APassThatThrowsIsReportedWithoutAWordFromItsCaller) {
  Two ranks(kShort);
  const auto fail = [&] {
    Progress::Pass pass(ranks.a.communicator.progress, 0, true);
    pass.enter(Stage::kPrologue, 2);
    throw std::runtime_error("boom");
  };
  EXPECT_THROW(fail(), std::runtime_error);
  EXPECT_TRUE(has(ranks.b.ended().message, "because rank 0 of 2 failed in step 7"));
  EXPECT_TRUE(has(ranks.a.ended().message, "backward prologue of level 2"));
}

TEST(Watchdog, ARankThatLeftEndsOnlyThoseThatWaitForIt) {
  Two ranks(milliseconds(2000));
  ranks.b.watchdog.reset();
  EXPECT_EQ(ranks.a.ended(milliseconds(400)).message, "");
  Progress::Pass pass(ranks.a.communicator.progress, 0, false);
  pass.enter(Stage::kCompute, 2);
  const Progress::Waiting waiting(ranks.a.communicator.progress);
  EXPECT_TRUE(has(ranks.a.ended(milliseconds(1500)).message, "rank 1 has ended before its work"));
}

TEST(Watchdog, ARankThatClosedIsNotMissed) {
  Two ranks(kShort);
  ranks.b.watchdog->close();
  EXPECT_EQ(ranks.a.ended(milliseconds(1500)).message, "");
}

TEST(Watchdog, ARankThatFallsSilentIsMissedByItsNeighbour) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Board(store, "test", 1).beat("3 " + encode({.step = 6, .call = 1}));  // and then never again
  Rank rank(store, 0, 2, kShort);
  EXPECT_TRUE(has(rank.ended().message, "because rank 1 has given no sign of life"));
}

// A store that answers nothing while it is stalled.
class StallingStore final : public c10d::HashStore {
 public:
  bool check(const std::vector<std::string>& keys) override {
    if (stalled) {
      answer_.wait();
    }
    return c10d::HashStore::check(keys);
  }
  void answer() {
    stalled = false;
    promise_.set_value();
  }
  std::atomic<bool> stalled = false;

 private:
  std::promise<void> promise_;
  std::shared_future<void> answer_{promise_.get_future()};
};

TEST(Watchdog, AStoreThatStallsMakesNoNeighbourSilent) {
  const auto store = c10::make_intrusive<StallingStore>();
  Board neighbour(store, "test", 1);
  neighbour.beat("1 " + encode({.step = 7}));
  Rank rank(store, 0, 2, kShort);
  EXPECT_EQ(rank.ended(milliseconds(200)).message, "");
  store->stalled = true;  // for the neighbour's watchdog too
  EXPECT_EQ(rank.ended(milliseconds(1300)).message, "");
  store->answer();
  // It looks before the neighbour's next sign is there.
  std::string message = rank.ended(milliseconds(200)).message;
  for (int beat = 2; beat < 20 && message.empty(); ++beat) {
    message = rank.ended(milliseconds(25)).message;
    neighbour.beat(std::to_string(beat) + " " + encode({.step = 7}));
  }
  EXPECT_EQ(message, "");
}

TEST(Watchdog, StopsAtOnceWhenNothingIsWrong) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const Two ranks(kLong);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace nsp
