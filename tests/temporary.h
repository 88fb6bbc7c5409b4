// Files of one test: ctest runs tests at the same time, so the name carries the test's.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace nsp {

inline std::string temporary_path(const std::string& name) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "nsp_" + test.test_suite_name() + "_" + test.name() + "_" + name;
}

}  // namespace nsp
