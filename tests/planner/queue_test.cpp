#include "nsp/planner/queue.h"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "cases.h"
#include "nsp/base/error.h"

namespace nsp {
namespace {

PlanRequest request_of(std::int64_t length) {
  return {.lengths = {length}};
}

// A planner whose plans say only which request they are of.
PlanResult echo(const PlanRequest& request) {
  return {.plan = {.num_tokens = request.lengths.front()}, .why_infeasible = ""};
}

TEST(PlanQueue, GivesThePlansOfPlanInTheOrderOfTheRequests) {
  PlanQueue queue(kTiny, kCpu, 3, 4);
  Random random(21);
  std::vector<PlanRequest> requests;
  for (std::int64_t i = 0; i < 20; ++i) {
    requests.push_back({.lengths = random_lengths(random, 1 + 5 * i, 12),
                        .world = 4,
                        .sp_max = 4,
                        .effort = "fast"});
  }
  std::thread producer([&] { std::ranges::for_each(requests, [&](auto& r) { queue.push(r); }); });
  for (const PlanRequest& request : requests) {
    PlanResult taken = queue.take();
    PlanResult expected = plan(request, kTiny, kCpu);
    taken.plan.planning_ms = expected.plan.planning_ms = 0;
    EXPECT_EQ(taken.plan, expected.plan);
  }
  producer.join();
}

// The first request's planning ends only after the second's.
TEST(PlanQueue, KeepsTheOrderWhenLaterPlansAreDoneFirst) {
  std::promise<void> second_done;
  PlanQueue queue(
      [&](const PlanRequest& request) {
        if (request.lengths.front() == 1) {
          second_done.get_future().wait();
        } else {
          second_done.set_value();
        }
        return echo(request);
      },
      2,
      2);
  queue.push(request_of(1));
  queue.push(request_of(2));
  EXPECT_EQ(queue.take().plan.num_tokens, 1);
  EXPECT_EQ(queue.take().plan.num_tokens, 2);
}

TEST(PlanQueue, AnExceptionArrivesWhereItsPlanIsTaken) {
  PlanQueue queue(kTiny, kCpu, 1, 3);
  queue.push(request_of(5));
  queue.push(request_of(-1));
  queue.push(request_of(7));
  EXPECT_EQ(queue.take().plan.num_tokens, 5);
  EXPECT_THROW(queue.take(), BadInput);
  EXPECT_EQ(queue.take().plan.num_tokens, 7);
}

TEST(PlanQueue, PushWaitsForRoom) {
  PlanQueue queue(echo, 1, 1);
  std::atomic<int> pushed = 0;
  std::thread producer([&] {
    for (std::int64_t i = 1; i <= 50; ++i) {
      queue.push(request_of(i));
      ++pushed;
    }
  });
  for (std::int64_t i = 1; i <= 50; ++i) {
    EXPECT_LE(pushed, i);  // one is in at most beside those taken
    EXPECT_EQ(queue.take().plan.num_tokens, i);
  }
  producer.join();
}

TEST(PlanQueue, DestructionDropsWhatHasNotBegun) {
  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<int> calls = 0;
  {
    PlanQueue queue(
        [&](const PlanRequest& request) {
          ++calls;
          begun.set_value();
          may_end.get_future().wait();
          return echo(request);
        },
        1,
        3);
    for (std::int64_t i = 1; i <= 3; ++i) {
      queue.push(request_of(i));
    }
    begun.get_future().wait();
    queue.close();
    may_end.set_value();
  }
  EXPECT_EQ(calls, 1);
}

TEST(PlanQueue, CloseWakesWhoWaits) {
  PlanQueue empty(echo, 1, 1);
  std::thread taker([&] { EXPECT_THROW(empty.take(), Error); });
  empty.close();
  taker.join();

  PlanQueue full(echo, 1, 1);
  full.push(request_of(1));
  std::thread producer([&] { EXPECT_THROW(full.push(request_of(2)), Error); });
  full.close();
  producer.join();
  EXPECT_THROW(full.take(), Error);
}

// The taker holds the second request's future when its task is dropped.
TEST(PlanQueue, ATakeOfADroppedRequestThrows) {
  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<int> calls = 0;
  PlanQueue queue(
      [&](const PlanRequest& request) {
        if (++calls == 1) {
          begun.set_value();
        }
        may_end.get_future().wait();
        return echo(request);
      },
      1,
      2);
  queue.push(request_of(1));
  queue.push(request_of(2));
  begun.get_future().wait();
  std::thread taker([&] {
    try {
      queue.take();  // of the first: planned, unless the close came before
      queue.take();
      ADD_FAILURE() << "a dropped request was planned";
    } catch (const Error&) {
    }
  });
  queue.close();
  may_end.set_value();
  taker.join();
  EXPECT_EQ(calls, 1);
}

TEST(PlanQueue, NeedsAThreadAndRoom) {
  EXPECT_THROW(PlanQueue(echo, 0, 1), BadInput);
  EXPECT_THROW(PlanQueue(echo, 1, 0), BadInput);
}

}  // namespace
}  // namespace nsp
