// Sizes of memory on the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace nsp {

// Turns 1.5GiB, 512 MiB, 64KiB or a number of bytes into bytes; a message for anything else and for
// sizes from 2^62 bytes.
CLI::Validator size_in_bytes();

}  // namespace nsp
