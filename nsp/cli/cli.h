// The command line `nsp`.
#pragma once

#include <string>
#include <vector>

#include "nsp/cli/commands.h"

namespace nsp {

// Arguments without the program's name. Never throws; returns the exit code: 0 done, 1 no plan fits
// or a check failed, 2 bad input or a failure of the world, such as a file or a standard output
// that cannot be written.
int run_cli(const std::vector<std::string>& arguments, Streams streams);

}  // namespace nsp
