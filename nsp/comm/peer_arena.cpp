#include "nsp/comm/peer_arena.h"

#include <fmt/format.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include "nsp/base/error.h"
#include "nsp/comm/device_events.h"

namespace nsp {
namespace {

namespace symmetric = c10d::symmetric_memory;

constexpr std::int64_t kWord = 4;

// Rows begin at a multiple of 4 KB.
std::int64_t counter_bytes(std::int32_t size) {
  return (2 * kWord * size + 4095) / 4096 * 4096;
}

// torch's allocator for tensors may hold what is free.
at::Tensor allocate(std::int64_t bytes, at::Device device) {
  const auto once = [&] {
    return symmetric::empty_strided_p2p(
        {bytes}, {1}, at::kByte, device, /*group_name=*/std::nullopt, /*alloc_id=*/std::nullopt);
  };
  try {
    return once();
  } catch (const std::exception&) {
    c10::cuda::CUDACachingAllocator::emptyCache();
    return once();
  }
}

}  // namespace

PeerArena::PeerArena(const std::string& group_name,
                     std::int32_t size,
                     at::Device device,
                     std::int64_t capacity)
    : size_(size), capacity_(capacity) {
  const std::int64_t bytes = counter_bytes(size) + capacity;
  try {
    memory_ = allocate(bytes, device);
    memory_.narrow(0, 0, counter_bytes(size)).zero_();
    current_stream(device).synchronize();  // before any neighbour sees it
    const auto memory = symmetric::rendezvous(memory_, group_name);
    for (void* pointer : memory->get_buffer_ptrs()) {
      if (pointer == nullptr) {
        throw Error("a neighbour's memory is not mapped");
      }
      bases_.push_back(static_cast<char*>(pointer) + memory->get_offset());
    }
  } catch (const std::exception& cause) {
    throw Error(
        fmt::format("peer copies: {} bytes of memory that all ranks of the host see could "
                    "not be had: {}; lower token_budget, or use NSP_TRANSPORT=collective",
                    bytes,
                    cause.what()));
  }
}

char* PeerArena::rows(std::int32_t member) const {
  return bases_[static_cast<std::size_t>(member)] + counter_bytes(size_);
}

void* PeerArena::ready(std::int32_t member, std::int32_t source) const {
  return bases_[static_cast<std::size_t>(member)] + kWord * source;
}

void* PeerArena::taken(std::int32_t member, std::int32_t receiver) const {
  return bases_[static_cast<std::size_t>(member)] + kWord * (size_ + receiver);
}

}  // namespace nsp
