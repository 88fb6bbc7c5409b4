#include "nsp/comm/c10d.h"

#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "thread_ranks.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;
using test::run_ranks;

const Purpose kPurpose{"forward prologue", 2};

std::vector<std::int64_t> values(const at::Tensor& x) {
  return {x.data_ptr<std::int64_t>(), x.data_ptr<std::int64_t>() + x.numel()};
}

// Rank 0 holds rows 0 1 2 and gives 1 to itself, 2 to rank 1; rank 1 holds 10 11 and gives both to
// 0.
TEST(C10d, MovesUnequalRows) {
  run_ranks(2, [](int rank, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    EXPECT_EQ(communicator->rank(), rank);
    EXPECT_EQ(communicator->size(), 2);
    const auto rows = at::arange(rank == 0 ? 3 : 2, at::kLong).add(10 * rank);
    const auto got = rank == 0 ? communicator->exchange(rows, {1, 2}, {1, 2}, kPurpose)->wait()
                               : communicator->exchange(rows, {2, 0}, {2, 0}, kPurpose)->wait();
    EXPECT_EQ(values(got), rank == 0 ? Counts({0, 10, 11}) : Counts({1, 2}));
    EXPECT_EQ(communicator->exchanges, 1);
    EXPECT_EQ(communicator->bytes, 16);  // two int64 leave either rank
  });
}

TEST(C10d, KeepsTheShapeOfARowAndTakesNothing) {
  run_ranks(3, [](int, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    const Counts none(3, 0);
    const auto got = communicator->exchange(at::empty({0, 4, 5}), none, none, kPurpose)->wait();
    EXPECT_EQ(got.sizes().vec(), Counts({0, 4, 5}));
    EXPECT_EQ(communicator->exchanges, 1);
    EXPECT_EQ(communicator->bytes, 0);
  });
}

TEST(C10d, SeveralExchangesAreInFlightAtOnce) {
  run_ranks(2, [](int rank, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    const Counts send = {rank == 0 ? 0 : 1, rank == 0 ? 1 : 0};
    auto first = communicator->exchange(at::zeros({1}, at::kLong).add(rank), send, send, kPurpose);
    auto second =
        communicator->exchange(at::zeros({1}, at::kLong).add(rank + 5), send, send, kPurpose);
    EXPECT_EQ(values(second->wait()), Counts({6 - rank}));
    EXPECT_EQ(values(first->wait()), Counts({1 - rank}));
  });
}

TEST(C10d, AFailureSaysWhereAndWhat) {
  const auto mismatch = [](int rank, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    const Counts send = rank == 0 ? Counts{1, 1} : Counts{2, 0};
    const Counts receive = {1, 1};
    communicator->exchange(at::zeros({2}), send, receive, kPurpose)->wait();
  };
  try {
    run_ranks(2, mismatch);
    FAIL() << "counts that do not match went through";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("of 2: the exchange of the forward prologue of level 2 failed"),
              std::string::npos)
        << text;
  }
}

TEST(C10d, ARankThatFailsLeavesNobodyWaiting) {
  const auto body = [](int rank, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    if (rank == 1) {
      throw BadInput("rank 1 gives up");
    }
    communicator->exchange(at::zeros({2}), {1, 1}, {1, 1}, kPurpose)->wait();
  };
  EXPECT_ANY_THROW(run_ranks(2, body));
}

TEST(C10d, AStoppedCommunicatorExchangesNoMore) {
  run_ranks(2, [](int, const std::string& group) {
    const auto communicator = make_c10d_communicator(group);
    const Counts one = {1, 1};
    const auto in_flight = communicator->exchange(at::zeros({2}), one, one, kPurpose);
    communicator->stop();
    EXPECT_THROW(in_flight->wait(), Error);
    EXPECT_THROW(communicator->exchange(at::zeros({2}), one, one, kPurpose), Error);
  });
}

TEST(C10d, UnknownGroupIsBadInput) {
  EXPECT_THROW(make_c10d_communicator("no such group"), BadInput);
}

}  // namespace
}  // namespace nsp
