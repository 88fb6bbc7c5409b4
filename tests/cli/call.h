// Calls the command line as a user would: arguments in; exit code, output and message back.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nsp/cli/cli.h"

namespace nsp {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

inline Outcome call(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(arguments, {.out = out, .err = err});
  return {.code = code, .out = out.str(), .err = err.str()};
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing '" << part << "' in\n" << text;
}

// Exit code 2, nothing on standard output, one line that holds `part`.
inline void expect_bad_input(const std::vector<std::string>& arguments, const std::string& part) {
  const Outcome outcome = call(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  expect_contains(outcome.err, part);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

}  // namespace nsp
