// Peer copies between ranks that are threads: the same protocol (PullSchedule) over host memory,
// with a thread for each stream of a rank, so that signals and pulls run when they like.
#pragma once

#include <cstdint>
#include <memory>

#include "nsp/comm/communicator.h"
#include "nsp/comm/peer_copies.h"

namespace nsp::test {

// What the ranks of a world share.
class HostArenas;

struct HostPeersOptions {
  std::int32_t reach = 1;
  std::int64_t fetch_nanoseconds = 0;  // what it says that a fetch costs
  std::uint64_t seed = 0;              // of the pauses of its threads
  bool wait_for_taken = true;          // false: a planted fault
  std::int64_t capacity = -1;          // at least 0: fixed, whatever is reserved
};

std::shared_ptr<HostArenas> make_host_arenas(std::int32_t world);

// A wait that takes longer than 20 s is a deadlock: it throws.
std::unique_ptr<PeerCopies> make_host_peers(std::shared_ptr<HostArenas> arenas,
                                            Communicator& communicator,
                                            const HostPeersOptions& options);

}  // namespace nsp::test
