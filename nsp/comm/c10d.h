// The communicator over a torch.distributed process group (gloo, NCCL): one all-to-all an exchange.
#pragma once

#include <memory>
#include <string>

#include "nsp/comm/communicator.h"

namespace nsp {

// `group_name` is ProcessGroup.group_name of a group over the whole world that nothing else uses
// (exchanges would queue behind, or be mistaken for, another user's collectives). Throws BadInput
// when no group has this name.
std::unique_ptr<Communicator> make_c10d_communicator(const std::string& group_name);

}  // namespace nsp
