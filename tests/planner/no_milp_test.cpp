// nsp/planner/no_milp.cpp, whichever of the swapped files the library has.
#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/planner/milp.h"

namespace nsp {
namespace {

TEST(NoMilp, SaysHowToGetASolver) {
  EXPECT_FALSE(has_milp());
  try {
    require_milp();
    FAIL() << "nothing was thrown";
  } catch (const BadInput& error) {
    EXPECT_STREQ(
        error.what(),
        "planner 'flexsp': this build has no MILP solver; pip install highsbox, then build "
        "again (make install)");
  }
  EXPECT_THROW(solve_milp({}, {}), BadInput);
}

}  // namespace
}  // namespace nsp
