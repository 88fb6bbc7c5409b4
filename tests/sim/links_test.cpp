#include "nsp/sim/links.h"

#include <gtest/gtest.h>

namespace nsp {
namespace {

// What is in flight on two ranks that exchange in slot 0, played until nothing is left.
struct Ends {
  std::int64_t exchange = -1;
  std::int64_t fsdp = -1;
};

Ends play(Links& links, Events& events) {
  Ends ends;
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    if (event.kind == EventKind::kExchange && links.end_exchange(event)) {
      links.rank_ends(0, event.time);
      links.rank_ends(1, event.time);
      ends.exchange = event.time;
    }
    if (event.kind == EventKind::kFsdp && links.end_fsdp(event, events)) {
      ends.fsdp = event.time;
    }
  }
  return ends;
}

void exchange(Links& links, std::int64_t nanoseconds, std::int64_t now, Events& events) {
  links.rank_starts(0, now);
  links.rank_starts(1, now);
  links.start_exchange(0, nanoseconds, now, events);
}

TEST(Links, AloneTrafficTakesItsTime) {
  Links links(2, 1);
  Events events;
  exchange(links, 100, 0, events);
  EXPECT_EQ(play(links, events).exchange, 100);
  links.start_fsdp(70, 200, events);
  EXPECT_EQ(play(links, events).fsdp, 270);
  EXPECT_EQ(links.exchanged(0, 300), 100);
  EXPECT_EQ(links.fsdp_busy(300), 70);
}

// Exchange 0-50 alone, its other half shared 50-150; the gather's first half shared, the rest
// alone.
TEST(Links, TwoShareEqually) {
  Links links(2, 1);
  Events events;
  exchange(links, 100, 0, events);
  links.start_fsdp(100, 50, events);
  const Ends ends = play(links, events);
  EXPECT_EQ(ends.exchange, 150);
  EXPECT_EQ(ends.fsdp, 200);
}

// The gather shares from 10 on and is done first: 10 alone, 2 x 40 shared, the exchange goes on at
// full speed: 150 - 40 done by 90.
TEST(Links, TheLongerOneSpeedsUpAgain) {
  Links links(3, 1);
  Events events;
  links.start_fsdp(50, 0, events);
  exchange(links, 150, 10, events);
  const Ends ends = play(links, events);
  EXPECT_EQ(ends.fsdp, 90);
  EXPECT_EQ(ends.exchange, 90 + 150 - 40);
}

TEST(Links, OddSharesRoundUp) {
  Links links(2, 1);
  Events events;
  links.start_fsdp(1000, 0, events);
  exchange(links, 7, 1, events);
  const Ends ends = play(links, events);
  EXPECT_EQ(ends.exchange, 15);
  EXPECT_EQ(ends.fsdp, 1007);
}

}  // namespace
}  // namespace nsp
