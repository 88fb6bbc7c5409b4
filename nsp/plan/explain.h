// Where each length class went, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

// The sequences of one length class that run at one degree with one backend.
struct ClassShare {
  std::string length;  // "up to 1K", "1K-4K", ... "above 256K"; K is 1,024 tokens
  std::int32_t degree = 1;
  Backend backend = Backend::kLocal;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::string why;
};

// Shortest class first, then largest degree first.
std::vector<ClassShare> explain(const Plan& plan);

}  // namespace nsp
