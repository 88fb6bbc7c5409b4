// Tests that a build without a MILP solver cannot run.
#pragma once

#include <gtest/gtest.h>

#include "nsp/planner/milp.h"

namespace nsp {

class NeedsMilp : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_milp()) {
      GTEST_SKIP() << "built without HiGHS";
    }
  }
};

}  // namespace nsp
