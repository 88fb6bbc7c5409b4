#include "nsp/base/hash.h"

#include <gtest/gtest.h>

namespace nsp {
namespace {

// XXH3-128 of the empty input with seed 0 is a published constant of xxHash.
TEST(Hash, IsXxh3OfTheBytes) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, ChangesWithOneByte) {
  EXPECT_NE(hash_hex("plan"), hash_hex("plao"));
  EXPECT_EQ(hash_hex("plan").size(), 32U);
}

}  // namespace
}  // namespace nsp
