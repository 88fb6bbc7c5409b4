// A named stretch of time for torch's profiler and for NVTX through it.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <ATen/record_function.h>

namespace nsp {

// Without a profiler it costs a look at the callbacks. The name outlives it.
class Range {
 public:
  explicit Range(std::string_view name) {
    if (auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE)) {
      record_.emplace(std::move(*callbacks));
      record_->before(name);
    }
  }

 private:
  std::optional<at::RecordFunction> record_;
};

}  // namespace nsp
