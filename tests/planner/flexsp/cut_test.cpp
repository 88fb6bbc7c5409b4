#include "nsp/planner/baselines/flexsp/cut.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "../cases.h"

namespace nsp {
namespace {

using Tokens = std::vector<std::int64_t>;

// The ends of every way to cut `size` things: bit i set: a piece ends after i.
Ends ends_of(unsigned bits, std::size_t size) {
  Ends ends;
  for (std::size_t i = 1; i < size; ++i) {
    if ((bits >> (i - 1) & 1U) != 0) {
      ends.push_back(i);
    }
  }
  ends.push_back(size);
  return ends;
}

std::int64_t largest_sum(const Tokens& tokens, const Ends& ends) {
  std::int64_t largest = 0;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    std::int64_t sum = 0;
    for (; begin < end; ++begin) {
      sum += tokens[begin];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

std::int64_t deviation(const Tokens& tokens, const Ends& ends) {
  std::int64_t sum = 0;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::int64_t longest = tokens[begin];
    for (; begin < end; ++begin) {
      sum += longest - tokens[begin];
    }
  }
  return sum;
}

template <typename Measure>
std::int64_t least_of_all(const Tokens& tokens, std::size_t most, Measure measure) {
  std::int64_t least = INT64_MAX;
  for (unsigned bits = 0; bits < 1U << (tokens.size() - 1); ++bits) {
    const Ends ends = ends_of(bits, tokens.size());
    least = ends.size() <= most ? std::min(least, measure(tokens, ends)) : least;
  }
  return least;
}

void expect_cut(const Tokens& tokens, const Ends& ends, std::size_t most) {
  ASSERT_LE(ends.size(), most);
  ASSERT_EQ(ends.back(), tokens.size());
  EXPECT_TRUE(std::ranges::adjacent_find(ends, std::greater_equal{}) == ends.end());
}

// 9 | 5 4 | 3 2 1: largest 9. Two pieces: 9 5 | 4 3 2 1, largest 14.
TEST(Cut, MicroBatchesByHand) {
  const Tokens tokens{9, 5, 4, 3, 2, 1};
  EXPECT_EQ(cut_evenly(tokens, 3), (Ends{1, 3, 6}));
  EXPECT_EQ(largest_sum(tokens, cut_evenly(tokens, 2)), 14);
  EXPECT_EQ(cut_evenly({}, 3), Ends{});
}

TEST(Cut, BucketsByHand) {
  EXPECT_EQ(cut_buckets(Tokens{100, 99, 10, 10, 9}, 2), (Ends{2, 5}));
  EXPECT_EQ(cut_buckets(Tokens{7, 7, 7}, 16), Ends{3});
  EXPECT_EQ(cut_buckets({}, 16), Ends{});
}

TEST(Cut, MicroBatchesAreAsEvenAsAnyCut) {
  Random random(31);
  for (int i = 0; i < 200; ++i) {
    Tokens tokens = random_lengths(random, pick(random, 1, 10), 7);
    std::ranges::sort(tokens, std::greater{});
    const auto most = static_cast<std::size_t>(pick(random, 1, 5));
    const Ends ends = cut_evenly(tokens, static_cast<std::int64_t>(most));
    expect_cut(tokens, ends, most);
    EXPECT_EQ(largest_sum(tokens, ends), least_of_all(tokens, most, largest_sum)) << "case " << i;
  }
}

TEST(Cut, BucketsDeviateAsLittleAsAnyCut) {
  Random random(37);
  for (int i = 0; i < 200; ++i) {
    Tokens tokens = random_lengths(random, pick(random, 1, 11), i % 2 == 0 ? 2 : 9);
    std::ranges::sort(tokens, std::greater{});
    const auto most = static_cast<std::size_t>(pick(random, 1, 6));
    const Ends ends = cut_buckets(tokens, most);
    expect_cut(tokens, ends, most);
    EXPECT_EQ(deviation(tokens, ends), least_of_all(tokens, most, deviation)) << "case " << i;
    for (const std::size_t end : ends) {
      EXPECT_TRUE(end == tokens.size() || tokens[end] != tokens[end - 1]) << "case " << i;
    }
  }
}

}  // namespace
}  // namespace nsp
