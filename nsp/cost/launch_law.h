// One attention launch: (W^3 + C^3)^(1/3), exactly, in integers: equal on every machine.
#pragma once

#include <cstdint>

namespace nsp {

// floor((work^3 + path^3)^(1/3)) for work, path >= 0; at least max(work, path). Beyond 2^41 the
// operands lose their lowest bits (relative 1e-12).
std::int64_t launch_law(std::int64_t work, std::int64_t path);

}  // namespace nsp
