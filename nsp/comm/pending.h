// An exchange under way.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace nsp {

// What an exchange serves: named in every error.
struct Purpose {
  std::string_view phase;  // "forward prologue"; static storage
  std::int32_t degree = 1;
};

// An exchange in flight. Keeps the sent and the received rows alive. Its communicator outlives it.
class Pending {
 public:
  virtual ~Pending() = default;
  // The received rows, of an exchange of a Communicator ordered by source rank; call once. On a GPU
  // it is the current stream that waits, not the host. Throws Error when the exchange failed.
  virtual at::Tensor wait() = 0;
};

}  // namespace nsp
