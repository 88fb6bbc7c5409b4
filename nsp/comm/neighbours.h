// The ranks that see each other's memory: an aligned group of the world.
#pragma once

#include <cstdint>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace nsp {

// A process group of torch's registry without a backend, for symmetric memory's rendezvous: that
// needs a store and ranks, and no communicator of NCCL's size.
class Neighbours {
 public:
  // `group_name`: the process group of the whole world, whose store is used. The group holds
  // `reach` ranks, `rank` of the world among them.
  Neighbours(std::int32_t rank, const std::string& group_name, std::int32_t reach);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  Neighbours(Neighbours&&) = delete;
  Neighbours& operator=(Neighbours&&) = delete;

  const std::string& name() const { return name_; }
  std::int32_t reach() const { return reach_; }
  std::int32_t first_rank() const { return first_rank_; }
  // Of this rank, and of a rank of the world.
  std::int32_t member() const { return member_; }
  std::int32_t member(std::int32_t rank) const { return rank - first_rank_; }

  // Returns when all have called it as often.
  void meet();

 private:
  std::int32_t reach_;
  std::int32_t first_rank_;
  std::int32_t member_;
  std::string name_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::int64_t turns_ = 0;
};

}  // namespace nsp
