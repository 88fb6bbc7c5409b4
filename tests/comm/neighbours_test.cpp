#include "nsp/comm/neighbours.h"

#include <atomic>
#include <string>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include "thread_ranks.h"

namespace nsp {
namespace {

TEST(Neighbours, AreAGroupThatTorchFinds) {
  test::run_ranks(4, [](int rank, const std::string& group) {
    const Neighbours neighbours(rank, group, 2);
    EXPECT_EQ(neighbours.first_rank(), rank / 2 * 2);
    EXPECT_EQ(neighbours.member(), rank % 2);
    const auto found = c10d::resolve_process_group(neighbours.name());
    EXPECT_EQ(found->getRank(), rank % 2);
    EXPECT_EQ(found->getSize(), 2);
    found->getStore()->set("from " + std::to_string(rank), "1");
    EXPECT_FALSE(found->getStore()->check({"from " + std::to_string((rank + 2) % 4)}));
  });
}

TEST(Neighbours, MeetAsOftenAsTheyLike) {
  std::atomic<int> arrived = 0;
  test::run_ranks(4, [&](int rank, const std::string& group) {
    Neighbours neighbours(rank, group, 4);
    for (int turn = 1; turn <= 3; ++turn) {
      ++arrived;
      neighbours.meet();
      EXPECT_GE(arrived, 4 * turn);
    }
  });
}

}  // namespace
}  // namespace nsp
