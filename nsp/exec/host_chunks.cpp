#include "nsp/exec/host_chunks.h"

#include <iterator>

#include <ATen/ops/empty.h>

namespace nsp {

std::vector<at::Tensor> HostChunks::take(std::int64_t bytes, bool pinned) {
  const std::scoped_lock lock(mutex_);
  std::vector<at::Tensor> chunks;
  for (std::int64_t taken = 0; taken < bytes; taken += kBytes) {
    if (free_.empty()) {
      free_.push_back(
          at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(pinned)));
      ++made_;
    }
    chunks.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  return chunks;
}

void HostChunks::give_back(std::vector<at::Tensor> chunks) {
  const std::scoped_lock lock(mutex_);
  free_.insert(
      free_.end(), std::make_move_iterator(chunks.begin()), std::make_move_iterator(chunks.end()));
}

std::int64_t HostChunks::bytes() const {
  const std::scoped_lock lock(mutex_);
  return made_ * kBytes;
}

}  // namespace nsp
