#include "nsp/attention/copy_list.h"

namespace nsp {

bool launch_copies(std::span<const BlockCopy>, at::Device) {
  return false;
}

}  // namespace nsp
