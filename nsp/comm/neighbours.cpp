#include "nsp/comm/neighbours.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace nsp {

Neighbours::Neighbours(std::int32_t rank, const std::string& group_name, std::int32_t reach)
    : reach_(reach),
      first_rank_(rank / reach * reach),
      member_(rank - first_rank_),
      name_(group_name + "/peer-copies"),
      store_(c10::make_intrusive<c10d::PrefixStore>(
          fmt::format("nsp/peer-copies/{}", first_rank_),
          c10d::resolve_process_group(group_name)->getStore())),
      group_(c10::make_intrusive<c10d::ProcessGroup>(store_, member_, reach)) {
  c10d::register_process_group(name_, group_);
}

Neighbours::~Neighbours() {
  c10d::unregister_process_group(name_);
}

void Neighbours::meet() {
  const std::string turn = fmt::format("meet/{}", turns_++);
  if (store_->add(turn, 1) == reach_) {
    store_->set(turn + "/all", std::string("1"));
  }
  store_->wait({turn + "/all"});
}

}  // namespace nsp
