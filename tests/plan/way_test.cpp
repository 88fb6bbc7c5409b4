#include "nsp/plan/way.h"

#include <gtest/gtest.h>

namespace nsp {
namespace {

constexpr Backend kAll[] = {
    Backend::kUlysses, Backend::kGather, Backend::kRing, Backend::kUspRing, Backend::kUspGather};

TEST(Way, LocalIsAlwaysAllowed) {
  EXPECT_EQ(allowed_ways({.heads = 4, .ranks_per_host = 2, .sp_max = 8}, {}),
            std::vector<Way>{head_split(1)});
}

TEST(Way, UlyssesAloneGoesAsFarAsHeadsDivide) {
  const Backend ulysses[] = {Backend::kUlysses};
  EXPECT_EQ(allowed_ways({.heads = 12, .ranks_per_host = 8, .sp_max = 16}, ulysses),
            (std::vector<Way>{head_split(1), head_split(2), head_split(4)}));
}

// Hosts of 2 ranks: degree 4 and 8 leave them, so usp runs 2 inside; 4 heads stop ulysses at 4.
TEST(Way, UspFillsAHost) {
  const std::vector<Way> ways = allowed_ways({.heads = 4, .ranks_per_host = 2, .sp_max = 8}, kAll);
  EXPECT_EQ(ways,
            (std::vector<Way>{head_split(1),
                              head_split(2),
                              {2, Backend::kGather, 1},
                              {2, Backend::kRing, 1},
                              head_split(4),
                              {4, Backend::kGather, 1},
                              {4, Backend::kRing, 1},
                              {4, Backend::kUspRing, 2},
                              {4, Backend::kUspGather, 2},
                              {8, Backend::kGather, 1},
                              {8, Backend::kRing, 1},
                              {8, Backend::kUspRing, 2},
                              {8, Backend::kUspGather, 2}}));
}

// Hosts of 6: aligned pairs stay inside one, groups of four do not.
TEST(Way, TheInnerSizeDividesAHost) {
  const Backend usp[] = {Backend::kUspGather};
  EXPECT_EQ(
      allowed_ways({.heads = 8, .ranks_per_host = 6, .sp_max = 8}, usp),
      (std::vector<Way>{head_split(1), {4, Backend::kUspGather, 2}, {8, Backend::kUspGather, 2}}));
}

}  // namespace
}  // namespace nsp
