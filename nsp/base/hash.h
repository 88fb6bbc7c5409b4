// Content hashes that are equal on every machine.
#pragma once

#include <string>
#include <string_view>

namespace nsp {

// XXH3-128 of the bytes, as 32 lower-case hexadecimal digits.
std::string hash_hex(std::string_view bytes);

}  // namespace nsp
