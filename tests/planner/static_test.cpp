#include "nsp/planner/baselines/static.h"

#include <numeric>

#include <gtest/gtest.h>

#include "cases.h"

namespace nsp {
namespace {

TEST(Static, DealsLongestFirstToTheLeastLoadedGroup) {
  const CostModel model = large_model();
  // Degree 1 on two ranks: 5 | 4, then 3 -> rank 1, 2 -> rank 0 (7 | 7).
  const Problem problem = problem_of(model, 2, 2, 8000, {5000, 4000, 3000, 2000});
  const Solution solution = static_degree(problem, 1);
  EXPECT_TRUE(solution.feasible);
  EXPECT_EQ(solution.placements[0].node, (Node{0, 1}));
  EXPECT_EQ(solution.placements[1].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[2].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[3].node, (Node{0, 1}));
}

TEST(Static, UsesOneDegree) {
  const CostModel model = large_model();
  const Solution solution =
      static_degree(problem_of(model, 8, 4, 100000, {9, 8, 7, 6, 5, 100000}), 4);
  for (const Placement& placement : solution.placements) {
    EXPECT_EQ(placement.node.degree, 4);
    EXPECT_EQ(placement.backend, Backend::kUlysses);
  }
}

TEST(Static, ABudgetThatCannotHoldIsInfeasible) {
  const CostModel model = large_model();
  EXPECT_FALSE(static_degree(problem_of(model, 2, 2, 9, {10}), 1).feasible);
  EXPECT_TRUE(static_degree(problem_of(model, 2, 2, 9, {10}), 2).feasible);
}

TEST(Static, ByTokensGoesWhereTheFewestTokensAre) {
  const CostModel model = large_model();
  // 9000 | 5000 4000 by tokens; by cost the third goes on, since attention grows with the square.
  const Problem problem = problem_of(model, 2, 2, 20000, {9000, 5000, 4100, 4000});
  const Solution solution = static_degree(problem, 1, Balance::kTokens);
  EXPECT_EQ(solution.placements[0].node, (Node{0, 1}));
  EXPECT_EQ(solution.placements[1].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[2].node, (Node{1, 1}));
  EXPECT_EQ(solution.placements[3].node, (Node{0, 1}));
  EXPECT_LE(static_degree(problem, 1).load, solution.load);
}

TEST(Static, UspIsUlyssesInsideAHostAndARingBetween) {
  const CostModel model(kLarge, kGpu, 4);
  Problem problem = problem_of(model, 16, 16, 100000, {90000, 40000, 8000});
  problem.backends = {Backend::kUlysses, Backend::kUspRing};
  for (const Placement& placement : static_degree(problem, 8).placements) {
    EXPECT_EQ(placement.backend, Backend::kUspRing);
    EXPECT_EQ(placement.ulysses_degree, 4);
  }
  for (const Placement& placement : static_degree(problem, 4).placements) {
    EXPECT_EQ(placement.backend, Backend::kUlysses);
  }
  problem.backends = {Backend::kUspRing};
  EXPECT_FALSE(static_way(problem, 2).has_value());
}

// Attention work of each group: sums of L^2.
std::vector<double> works(const Solution& solution, std::int32_t world, std::int32_t degree) {
  std::vector<double> result(static_cast<std::size_t>(world / degree), 0);
  for (const Placement& placement : solution.placements) {
    const auto tokens = static_cast<double>(placement.tokens);
    result[static_cast<std::size_t>(placement.node.first_rank / degree)] += tokens * tokens;
  }
  return result;
}

double largest_over_mean(const std::vector<double>& work) {
  return std::ranges::max(work) * static_cast<double>(work.size()) /
         std::accumulate(work.begin(), work.end(), 0.0);
}

// arXiv 2609.22755, appendix A: from degree s to 2s, the k-th largest group with the (m + k)-th.
TEST(Static, PairedGroupsOfTwiceTheDegreeAreNoLessBalanced) {
  const CostModel model = large_model();
  Random random(31);
  for (int i = 0; i < 300; ++i) {
    const std::int32_t degree = 1 << pick(random, 0, 2);
    const auto m = static_cast<std::int32_t>(pick(random, 1, 6));
    const std::int32_t world = 2 * degree * m;
    const Balance balance = random.below(2) == 0 ? Balance::kCost : Balance::kTokens;
    const Problem problem = problem_of(
        model, world, 2 * degree, 1 << 30, random_lengths(random, pick(random, 2, 60), 15));
    const Solution single = static_degree(problem, degree, balance);
    const std::vector<double> work = works(single, world, degree);
    std::vector<std::size_t> order(work.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
    std::vector<std::int32_t> pair_of(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      pair_of[order[k]] = static_cast<std::int32_t>(k) % m;
    }
    std::vector<Node> nodes;
    for (const Placement& placement : single.placements) {
      const auto group = static_cast<std::size_t>(placement.node.first_rank / degree);
      nodes.push_back({.first_rank = pair_of[group] * 2 * degree, .degree = 2 * degree});
    }
    const Solution paired = score(problem, nodes);
    const double mean = std::accumulate(work.begin(), work.end(), 0.0) / (2.0 * m);
    const double before = largest_over_mean(work);
    const double spread = work[order[0]] - mean;
    const double rho = spread > 0 ? (work[order[static_cast<std::size_t>(m)]] - mean) / spread : 0;
    EXPECT_LE(largest_over_mean(works(paired, world, 2 * degree)) - 1,
              (1 + rho) / 2 * (before - 1) + 1e-9)
        << "case " << i;
    // Tokens: a rank of the pair holds at most what one of the two held, and a token a sequence.
    EXPECT_LE(paired.tokens_max, single.tokens_max + std::ssize(problem.sequences)) << "case " << i;
  }
}

}  // namespace
}  // namespace nsp
