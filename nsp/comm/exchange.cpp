#include "nsp/comm/exchange.h"

#include <fmt/format.h>

#include "nsp/base/error.h"

namespace nsp {

void Exchange::fail(const std::exception& cause) const {
  throw Error(
      fmt::format("rank {} of {}: the exchange of the {} of level {} failed in {}: {}; look at "
                  "the rank that ended first",
                  communicator.rank(),
                  communicator.size(),
                  purpose.phase,
                  purpose.degree,
                  describe(communicator.progress.place()),
                  cause.what()));
}

void Exchange::expect_running() const {
  if (communicator.stopped) {
    fail(Error("the watchdog has stopped the communicator"));
  }
}

}  // namespace nsp
