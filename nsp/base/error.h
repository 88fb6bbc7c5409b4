// Two kinds of failure. The caller's mistake (BadInput) is met at the public edge by one sentence:
// field, value, what is allowed. The world's failure (Error: a file, a peer, a device) says where.
// "Does not fit" is neither: it is an answer (Plan::feasible).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace nsp {

// Becomes ValueError in Python and exit code 2 in the command line.
class BadInput : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Becomes RuntimeError in Python.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws BadInput("<field> <value>: <remedy>"), e.g. "sp_max 3: must be a power of two".
[[noreturn]] void bad_input(std::string_view field,
                            std::string_view value,
                            std::string_view remedy);
[[noreturn]] void bad_input(std::string_view field, long long value, std::string_view remedy);

}  // namespace nsp
