// Host memory that offloaded rows are copied to: chunks of one size, handed out again and again, so
// that after the first steps none is allocated, and plans of any shape share them.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

// Thread-safe.
class HostChunks {
 public:
  // A power of two, which torch's allocator of pinned memory rounds to.
  static constexpr std::int64_t kBytes = std::int64_t{32} << 20;

  // Enough for `bytes`, each (kBytes) bytes; pinned where devices copy to and from them.
  std::vector<at::Tensor> take(std::int64_t bytes, bool pinned);
  void give_back(std::vector<at::Tensor> chunks);
  // Of all chunks, also those that are handed out. They are kept until this is gone.
  std::int64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<at::Tensor> free_;
  std::int64_t made_ = 0;
};

}  // namespace nsp
