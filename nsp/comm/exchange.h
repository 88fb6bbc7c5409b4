// One exchange as a person reads of it in one rank's log.
#pragma once

#include <exception>

#include "nsp/comm/communicator.h"

namespace nsp {

struct Exchange {
  Communicator& communicator;
  Purpose purpose;

  // Throws the Error that names the rank, the exchange, its place in the step and the cause.
  [[noreturn]] void fail(const std::exception& cause) const;
  // Throws that Error once the communicator was stopped.
  void expect_running() const;
};

}  // namespace nsp
