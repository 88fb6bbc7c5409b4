#include "nsp/planner/baselines/flexsp/exact.h"

#include <gtest/gtest.h>

#include "../cases.h"
#include "../needs_milp.h"
#include "cover.h"
#include "nsp/planner/baselines/flexsp/counts.h"

namespace nsp {
namespace {

class Exact : public NeedsMilp {};

// Every partition of the ranks into degrees, every assignment of the sequences to its groups (each
// sequence a bucket of its own), the time of the slowest group that has any.
class AllPartitions {
 public:
  AllPartitions(const Problem& problem, const LinearCosts& linear)
      : problem_(problem), linear_(linear) {}

  double least() {
    split(linear_.levels, linear_.world);
    return least_;
  }

 private:
  // Groups of levels below `level` for `ranks`.
  void split(std::size_t level, std::int64_t ranks) {
    if (level == 0) {
      if (ranks == 0) {
        time_.assign(groups_.size(), 0);
        tokens_.assign(groups_.size(), 0);
        assign(0, 0);
      }
      return;
    }
    split(level - 1, ranks);
    const std::int64_t degree = std::int64_t{1} << (level - 1);
    if (ranks >= degree) {
      groups_.push_back(level - 1);
      split(level, ranks - degree);
      groups_.pop_back();
    }
  }

  void assign(std::size_t sequence, double time) {
    if (time >= least_) {
      return;
    }
    if (sequence == problem_.sequences.size()) {
      least_ = time;
      return;
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::size_t l = groups_[g];
      const std::int64_t degree = std::int64_t{1} << l;
      const std::int64_t tokens = problem_.sequences[sequence].tokens;
      const std::int64_t slice = (tokens + degree - 1) / degree;
      if (tokens_[g] + slice > problem_.token_budget) {
        continue;
      }
      const double before = time_[g];
      time_[g] += (tokens_[g] == 0 ? linear_.fixed[l] : 0) +
                  static_cast<double>(share(*problem_.model, tokens, 1 << l));
      tokens_[g] += slice;
      assign(sequence + 1, std::max(time, time_[g]));
      tokens_[g] -= slice;
      time_[g] = before;
    }
  }

  const Problem& problem_;
  const LinearCosts& linear_;
  std::vector<std::size_t> groups_;
  std::vector<double> time_;
  std::vector<std::int64_t> tokens_;
  double least_ = 1e300;
};

std::vector<std::int64_t> different_lengths(Random& random) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = pick(random, 1, 5); i > 0; --i) {
    lengths.push_back(pick(random, 1, std::int64_t{1} << pick(random, 4, 17)) * 8 + i);
  }
  return lengths;
}

// All sequences on one group of the largest degree.
Partition one_group(const LinearCosts& linear) {
  const std::int32_t degree = 1 << (linear.levels - 1);
  std::int64_t count = 0;
  for (const std::int64_t c : linear.count) {
    count += c;
  }
  return partition_of(linear,
                      level(linear.world, degree),
                      std::vector<Node>(static_cast<std::size_t>(count), {0, degree}));
}

TEST_F(Exact, ReachesTheOptimumOfEveryPartition) {
  const CostModel model = large_model();
  Random random(41);
  for (int i = 0; i < 40; ++i) {
    const auto sp_max = static_cast<std::int32_t>(std::int64_t{1} << pick(random, 0, 3));
    const auto world = sp_max * static_cast<std::int32_t>(pick(random, 1, 8 / sp_max));
    const std::vector<std::int64_t> lengths = different_lengths(random);
    std::int64_t budget = 0;
    for (const std::int64_t length : lengths) {
      budget = std::max(budget, (length + sp_max - 1) / sp_max);
      budget += length / world / 2;
    }
    const Problem problem = problem_of(model, world, sp_max, budget, lengths);
    CostTable costs(problem);
    const LinearCosts linear = linear_costs(costs);
    const double least = AllPartitions(problem, linear).least();
    const auto found = exact_partition(linear, one_group(linear), 10000);
    ASSERT_EQ(found.has_value(), least < 1e300) << "case " << i;
    if (found) {
      EXPECT_NEAR(linear_time(linear, *found) / least, 1, 2e-4) << "case " << i;
      EXPECT_GE(least, linear.least_time() * (1 - 1e-12)) << "case " << i;
      EXPECT_TRUE(partition_by_counts(linear, least * 3).has_value()) << "case " << i;
      EXPECT_FALSE(partition_by_counts(linear, linear.least_time() * 0.99).has_value());
    }
  }
}

// World 4, budget 10: 40 tokens need all ranks, so no time holds 40 and 1 together.
TEST_F(Exact, NothingFitsIsAnAnswer) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 4, 4, 10, {40, 1});
  CostTable costs(problem);
  const LinearCosts linear = linear_costs(costs);
  EXPECT_FALSE(linear.at(0, 1).allowed);
  EXPECT_TRUE(linear.at(0, 2).allowed);
  EXPECT_FALSE(exact_partition(linear, one_group(linear), 100).has_value());
  EXPECT_FALSE(partition_by_counts(linear, 1e15).has_value());
}

// 8 ranks, two sequences that need 4 and 2: the groups cover the ranks, largest first.
TEST_F(Exact, GroupsAreAlignedAndCoverTheRanks) {
  const CostModel model = large_model();
  const Problem problem = problem_of(model, 8, 8, 10000, {40000, 19000, 5});
  CostTable costs(problem);
  const LinearCosts linear = linear_costs(costs);
  const auto found = exact_partition(linear, one_group(linear), 1000);
  ASSERT_TRUE(found.has_value());
  expect_cover(nodes_of(*found), 8, 8);
  const std::vector<Node> placed = deal(costs, linear, *found);
  EXPECT_GE(placed[0].degree, 4);
  EXPECT_GE(placed[1].degree, 2);
}

}  // namespace
}  // namespace nsp
