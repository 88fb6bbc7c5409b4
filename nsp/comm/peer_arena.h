// Memory of one size on every device of a group, each mapped by all: torch's symmetric memory, with
// counters at its head (PullSchedule).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace nsp {

class PeerArena {
 public:
  // Collective over the group, a process group of torch's registry whose members share a host.
  // `size`: its ranks; `capacity`: bytes for rows, equal on all. Throws Error when memory cannot be
  // had or mapped.
  PeerArena(const std::string& group_name,
            std::int32_t size,
            at::Device device,
            std::int64_t capacity);

  std::int64_t capacity() const { return capacity_; }
  // Of a member's arena, as this process sees it: its rows, and its counters, one of each kind for
  // every member.
  char* rows(std::int32_t member) const;
  void* ready(std::int32_t member, std::int32_t source) const;
  void* taken(std::int32_t member, std::int32_t receiver) const;

 private:
  std::int32_t size_;
  std::int64_t capacity_;
  at::Tensor memory_;
  std::vector<char*> bases_;
};

}  // namespace nsp
