#include "nsp/base/error.h"
#include "nsp/comm/peer_copies.h"

namespace nsp {

bool has_peer_copies() {
  return false;
}

std::unique_ptr<PeerCopies> make_peer_copies(Communicator&,
                                             const std::string&,
                                             at::Device,
                                             std::int32_t) {
  bad_input("transport", "peer-copy", "this build has no CUDA; use collective");
}

}  // namespace nsp
