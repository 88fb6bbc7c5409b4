// Ranks whose streams run in any order that the signals allow: every row that is pulled is the one
// that was staged for this exchange, and nobody waits for ever. Time is a seeded choice of the next
// step, so a failing order can be played again.
#include "nsp/comm/pull_schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/base/random.h"

namespace nsp {
namespace {

constexpr std::int64_t kRow = 256;  // bytes; one cell of a simulated arena

enum class Act : std::uint8_t { kAwaitTaken, kStage, kTell, kAwaitReady, kCopy, kTake };

// What a cell holds: exchange, source, receiver, row of the block; all 0: nothing.
using Stamp = std::tuple<std::size_t, std::int32_t, std::int32_t, std::int64_t>;

// One step of a stream. `others`: the counters that are read or written, by the other rank.
struct Step {
  Act act = Act::kStage;
  std::size_t exchange = 0;
  std::vector<Signal> others{};
  std::int64_t cell = 0;  // stage: the first; copy: in the source's arena
  Stamp stamp{};          // copy: what must be there
};

struct Setting {
  std::int32_t world = 8;
  std::int64_t cells = 64;
  bool one_queue = false;      // all streams of a rank in their order of issue
  bool wait_for_taken = true;  // false: a planted fault
  std::vector<std::int32_t> degrees = {2, 4, 8};
  std::size_t pass = 7;  // exchanges until the next restart
};

// Rows between all members, equal on all ranks; about a third of the pairs have none.
Route random_route(Random& random, std::int32_t first, std::int32_t degree) {
  Route route{.first_rank = first, .degree = degree};
  for (std::int32_t pair = 0; pair < degree * degree; ++pair) {
    route.counts.push_back(random.below(3) == 0 ? 0 : static_cast<std::int64_t>(random.below(3)));
  }
  return route;
}

// For every exchange, the route of each rank.
std::vector<std::vector<Route>> random_routes(const Setting& setting, Random& random, int count) {
  std::vector<std::vector<Route>> exchanges;
  for (int i = 0; i < count; ++i) {
    const std::int32_t degree = setting.degrees[random.below(setting.degrees.size())];
    std::vector<Route>& ranks = exchanges.emplace_back();
    std::int64_t most = 0;
    for (std::int32_t first = 0; first < setting.world; first += degree) {
      const Route route = random_route(random, first, degree);
      for (std::int32_t member = 0; member < degree; ++member) {
        most = std::max(most, route.staged(member));
        ranks.push_back(route);
      }
    }
    for (Route& route : ranks) {
      route.most_staged = most;
    }
  }
  return exchanges;
}

class World {
 public:
  World(const Setting& setting, std::uint64_t seed)
      : setting_(setting), random_(seed), arenas_(static_cast<std::size_t>(setting.world)) {
    routes_ = random_routes(setting, random_, 40);
    for (auto& arena : arenas_) {
      arena.resize(static_cast<std::size_t>(setting.cells));
    }
    for (std::int32_t rank = 0; rank < setting.world; ++rank) {
      issue(rank);
    }
  }

  // Empty when all went well.
  std::string run() {
    while (true) {
      std::vector<std::pair<std::int32_t, std::deque<Step>*>> ready;
      bool left = false;
      for (std::int32_t rank = 0; rank < setting_.world; ++rank) {
        for (auto& queue : queues_[rank]) {
          left = left || !queue.empty();
          if (!queue.empty() && may_run(rank, queue.front())) {
            ready.emplace_back(rank, &queue);
          }
        }
      }
      if (ready.empty()) {
        return left ? "the ranks wait for each other" : fault_;
      }
      auto& [rank, queue] = ready[random_.below(ready.size())];
      perform(rank, queue->front());
      queue->pop_front();
    }
  }

  std::int64_t copied() const { return copied_; }

 private:
  // Queues of a rank: compute, signal, pull.
  void issue(std::int32_t rank) {
    PullSchedule schedule(0, setting_.world, rank, setting_.cells * kRow);
    auto& queues = queues_[rank];
    queues.resize(3);
    const auto add = [&](std::size_t queue, Step step) {
      queues[setting_.one_queue ? 0 : queue].push_back(std::move(step));
    };
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      const Route& route = routes_[i][static_cast<std::size_t>(rank)];
      const std::int32_t me = rank - route.first_rank;
      if (i % setting_.pass == 0) {
        schedule.restart();
      }
      const Staging staging = schedule.stage(route, kRow);
      if (setting_.wait_for_taken) {
        add(0, {.act = Act::kAwaitTaken, .exchange = i, .others = staging.taken});
      }
      add(0, {.act = Act::kStage, .exchange = i, .cell = staging.offset / kRow});
      const Pulling pulling = schedule.pull(route, kRow);
      add(1, {.act = Act::kTell, .exchange = i, .others = pulling.ready});
      for (const Pulling::Source& source : pulling.sources) {
        add(2, {.act = Act::kAwaitReady, .exchange = i, .others = {source.ready}});
        for (std::int64_t row = 0; row < route.rows(source.member, me); ++row) {
          add(2,
              {.act = Act::kCopy,
               .exchange = i,
               .others = {source.ready},
               .cell = source.offset / kRow + row,
               .stamp = {i + 1, source.ready.rank, rank, row}});
        }
        add(2, {.act = Act::kTake, .exchange = i, .others = {source.ready}});
      }
    }
  }

  bool may_run(std::int32_t rank, const Step& step) {
    const auto reached = [&](auto& counters) {
      return std::ranges::all_of(step.others, [&](const Signal& signal) {
        return counters[{rank, signal.rank}] >= signal.value;
      });
    };
    switch (step.act) {
      case Act::kAwaitTaken:
        return reached(taken_);
      case Act::kAwaitReady:  // and for the own staging, as the event between the streams does
        return reached(ready_) && staged_[rank] > step.exchange;
      case Act::kTell:
        return staged_[rank] > step.exchange;
      default:
        return true;
    }
  }

  void perform(std::int32_t rank, const Step& step) {
    if (step.act == Act::kStage) {
      stage(rank, step);
    }
    for (const Signal& other : step.others) {
      if (step.act == Act::kTell) {
        ready_[{other.rank, rank}] = other.value;
      } else if (step.act == Act::kTake) {
        taken_[{other.rank, rank}] = other.value;
      } else if (step.act == Act::kCopy) {
        ++copied_;
        if (cell(other.rank, step.cell) != step.stamp) {
          fault_ = "rank " + std::to_string(rank) + " pulled a row of another exchange";
        }
      }
    }
  }

  void stage(std::int32_t rank, const Step& step) {
    const Route& route = routes_[step.exchange][static_cast<std::size_t>(rank)];
    const std::int32_t me = rank - route.first_rank;
    std::int64_t at = step.cell;
    for (std::int32_t receiver = 0; receiver < route.degree; ++receiver) {
      for (std::int64_t row = 0; receiver != me && row < route.rows(me, receiver); ++row) {
        cell(rank, at++) = {step.exchange + 1, rank, route.first_rank + receiver, row};
      }
    }
    staged_[rank] = step.exchange + 1;
  }

  Stamp& cell(std::int32_t rank, std::int64_t index) {
    return arenas_[static_cast<std::size_t>(rank)].at(static_cast<std::size_t>(index));
  }

  using Counters = std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t>;  // owner, writer
  Setting setting_;
  Random random_;
  std::vector<std::vector<Route>> routes_;
  std::vector<std::vector<Stamp>> arenas_;
  std::map<std::int32_t, std::vector<std::deque<Step>>> queues_;
  std::map<std::int32_t, std::size_t> staged_;
  Counters ready_;
  Counters taken_;
  std::int64_t copied_ = 0;
  std::string fault_;
};

TEST(PullSchedule, NoRowIsOverwrittenBeforeItWasTaken) {
  std::int64_t copied = 0;
  for (const bool one_queue : {false, true}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      World world({.one_queue = one_queue}, seed);
      EXPECT_EQ(world.run(), "") << "seed " << seed << ", one queue " << one_queue;
      copied += world.copied();
    }
  }
  EXPECT_GT(copied, 10000);
}

TEST(PullSchedule, WorksInAnArenaOfOneExchange) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::int32_t degree : {2, 4, 8}) {
      World world({.cells = 2 * (degree - 1), .degrees = {degree}}, seed);
      EXPECT_EQ(world.run(), "") << "seed " << seed << ", degree " << degree;
    }
  }
}

TEST(PullSchedule, WithoutWaitingForTakenRowsAreLost) {
  int faults = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world({.wait_for_taken = false}, seed);
    faults += world.run().empty() ? 0 : 1;
  }
  EXPECT_GT(faults, 10);
}

// Ranks 0 and 1 of a group of 2, arenas of 4 rows. Exchange 1: rank 0 sends 3 rows, rank 1 none.
// Exchange 2: both send 2. The ring has one row left, so exchange 2 begins anew at 0 and waits
// for exchange 1.
TEST(PullSchedule, ATurnOfTheRingIsSolvedByHand) {
  const Route first{.degree = 2, .counts = {9, 3, 0, 9}, .most_staged = 3};
  const Route second{.degree = 2, .counts = {0, 2, 2, 0}, .most_staged = 2};
  PullSchedule schedule(0, 2, 0, 4 * kRow);
  EXPECT_EQ(schedule.stage(first, kRow).offset, 0);
  const Pulling pulling = schedule.pull(first, kRow);
  EXPECT_EQ(pulling.ready, (std::vector<Signal>{{1, 1}}));
  EXPECT_TRUE(pulling.sources.empty());
  const Staging staging = schedule.stage(second, kRow);
  EXPECT_EQ(staging.offset, 0);
  EXPECT_EQ(staging.taken, (std::vector<Signal>{{1, 1}}));
  const Pulling after = schedule.pull(second, kRow);
  EXPECT_EQ(after.ready, (std::vector<Signal>{{1, 2}}));
  ASSERT_EQ(after.sources.size(), 1U);
  EXPECT_EQ(after.sources[0].ready, (Signal{1, 1}));
}

TEST(PullSchedule, ARestartBeginsAtTheBeginningAndStillWaits) {
  const Route route{.degree = 2, .counts = {0, 2, 2, 0}, .most_staged = 2};
  PullSchedule schedule(0, 2, 0, 8 * kRow);
  EXPECT_EQ(schedule.stage(route, kRow).offset, 0);
  EXPECT_EQ(schedule.stage(route, kRow).offset, 2 * kRow);
  schedule.restart();
  const Staging staging = schedule.stage(route, kRow);
  EXPECT_EQ(staging.offset, 0);
  EXPECT_EQ(staging.taken, (std::vector<Signal>{{1, 1}}));
}

TEST(PullSchedule, WhatDoesNotFitIsAnError) {
  PullSchedule schedule(0, 2, 0, kRow);
  const Route route{.degree = 2, .counts = {0, 2, 0, 0}, .most_staged = 2};
  EXPECT_THROW(schedule.stage(route, kRow), Error);
}

}  // namespace
}  // namespace nsp
