// How rows of tensors travel between the ranks of the world.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/comm/in_flight.h"
#include "nsp/comm/peer_copies.h"
#include "nsp/comm/pending.h"
#include "nsp/comm/progress.h"

namespace nsp {

// One communicator over the whole world. Exchanges match by their order, so every rank issues the
// same sequence of them, also with nothing to send.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;

  // Starts an all-to-all of unequal parts and returns at once. `rows` is contiguous; its dimension
  // 0 holds send_counts[0] rows for rank 0, then send_counts[1] for rank 1, ... Every count list
  // has size() entries. Throws Error when it cannot be started.
  virtual std::unique_ptr<Pending> exchange(at::Tensor rows,
                                            std::vector<std::int64_t> send_counts,
                                            std::vector<std::int64_t> receive_counts,
                                            const Purpose& purpose) = 0;

  // Lets every exchange that the host waits for, and every later one, end with an Error. From any
  // thread; the communicator is of no use afterwards.
  virtual void stop() { stopped = true; }

  std::atomic<bool> stopped = false;
  Progress progress;   // of the rank: written by the executor
  InFlight in_flight;  // exchanges that the device has not finished
  std::atomic<std::int64_t> exchanges = 0;
  std::atomic<std::int64_t> bytes = 0;  // sent to other ranks

  // Another way inside a host, if there is one: chosen level by level (Program).
  std::unique_ptr<PeerCopies> peers;
};

}  // namespace nsp
