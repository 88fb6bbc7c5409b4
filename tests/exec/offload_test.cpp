// Rows that wait in host memory: they come back as they were, in any order, and their memory is
// used again. (Streams: tests/gpu/marks_test.py.)
#include "nsp/exec/offload.h"

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

namespace nsp {
namespace {

using at::Tensor;

Tensor rows(std::int64_t count) {
  return at::rand({count, 4, 8}, at::kDouble);
}

Tensor restored(OffloadedRows& rows, const Tensor& like) {
  const Tensor to = at::zeros_like(like);
  rows.restore({to});
  return to;
}

TEST(Offload, RowsComeBackInAnyOrderAndAgain) {
  Offload offload;
  std::vector<Tensor> sent;
  std::vector<std::shared_ptr<OffloadedRows>> away;
  for (const std::int64_t count : {3, 5, 1, 7}) {
    sent.push_back(rows(count));
    away.push_back(offload.send({sent.back()}));
  }
  for (const std::size_t i : {3U, 2U, 1U, 0U, 2U, 0U, 3U, 3U, 1U}) {
    EXPECT_TRUE(restored(*away[i], sent[i]).equal(sent[i])) << i;
  }
}

TEST(Offload, LaterChangesOfTheOutputDoNotReachThem) {
  Offload offload;
  const Tensor row = rows(3);
  const Tensor before = row.clone();
  const auto away = offload.send({row});
  row.zero_();
  EXPECT_TRUE(restored(*away, row).equal(before));
}

TEST(Offload, BlocksOfACallGoBackToTheirPlaces) {
  Offload offload;
  const Tensor row = rows(9);
  const auto away = offload.send({row.narrow(0, 1, 2), row.narrow(0, 5, 3)});
  EXPECT_EQ(away->bytes(), 5 * 4 * 8 * 8);
  const Tensor to = at::zeros_like(row);
  away->restore({to.narrow(0, 1, 2), to.narrow(0, 5, 3)});
  EXPECT_TRUE(to.narrow(0, 1, 2).equal(row.narrow(0, 1, 2)));
  EXPECT_TRUE(to.narrow(0, 5, 3).equal(row.narrow(0, 5, 3)));
  EXPECT_EQ(to.narrow(0, 3, 2).count_nonzero().item<std::int64_t>(), 0);
}

TEST(Offload, OneDroppedInTheMiddleHidesNoOther) {
  Offload offload;
  const Tensor one = rows(2), two = rows(3), three = rows(4);
  const auto first = offload.send({one});
  auto second = offload.send({two});
  const auto third = offload.send({three});
  EXPECT_TRUE(restored(*third, three).equal(three));  // the second comes back ahead
  second.reset();
  EXPECT_TRUE(restored(*first, one).equal(one));
}

TEST(Offload, RowsOfMoreThanOneChunkAndChunksUsedAgain) {
  Offload offload;
  const std::int64_t count = HostChunks::kBytes / (4 * 8 * 8) + 1;
  for (int turn = 0; turn < 3; ++turn) {
    const Tensor large = rows(count), small = rows(2);
    const auto away = offload.send({large});
    const auto other = offload.send({small});
    EXPECT_TRUE(restored(*other, small).equal(small));
    EXPECT_TRUE(restored(*away, large).equal(large));
    EXPECT_EQ(offload.host_bytes(), 3 * HostChunks::kBytes);
  }
}

}  // namespace
}  // namespace nsp
