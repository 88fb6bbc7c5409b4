#include "nsp/base/error.h"

#include <gtest/gtest.h>

namespace nsp {
namespace {

TEST(Error, BadInputNamesFieldValueAndRemedy) {
  try {
    bad_input("sp_max", 3, "must be a power of two");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "sp_max 3: must be a power of two");
  }
}

TEST(Error, BadInputIsAnInvalidArgument) {
  EXPECT_THROW(bad_input("model", "'x'", "must be known"), std::invalid_argument);
}

}  // namespace
}  // namespace nsp
