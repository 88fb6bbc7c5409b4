// Exchanges inside a host by copy engines: a source stages its rows in memory that its neighbours
// see, and each receiver pulls them straight to their place. No kernel runs for it, so it travels
// beside attention whatever the order of issue (PullSchedule has the protocol).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/comm/pending.h"
#include "nsp/comm/route.h"

namespace nsp {

class Communicator;

// Rows [row, row + to.size(0)) of a source's block for this rank, of each the heads from `head` on,
// and where they go: `to` (rows, heads, D), each row's heads adjacent.
struct Fetch {
  std::int32_t source = 0;  // member of the node, not this rank
  std::int64_t row = 0;
  std::int64_t head = 0;
  at::Tensor to;
};

// Every rank of the world issues the same exchanges in the same order, by one thread at a time: for
// each, stage, then pull, also with nothing to send.
class PeerCopies {
 public:
  virtual ~PeerCopies() = default;

  // The largest degree whose nodes it serves. Equal on all ranks.
  virtual std::int32_t reach() const = 0;
  // What one more fetch costs the copy engines.
  virtual std::int64_t fetch_nanoseconds() const = 0;
  // Bytes of this rank's arena.
  virtual std::int64_t capacity() const = 0;

  // Lets the arena hold at least `bytes`, equal on all ranks. Collective when it grows: it then
  // waits for all exchanges of all ranks. Throws Error when the memory cannot be had.
  virtual void reserve(std::int64_t bytes) = 0;

  // Memory for the rows of one exchange that leave this rank, as the route orders them: (rows,
  // heads, head_dim). Write it on the current stream, which waits until it is free.
  virtual at::Tensor stage(const Route& route,
                           std::int64_t heads,
                           std::int64_t head_dim,
                           const at::TensorOptions& options) = 0;

  // Starts the exchange whose rows were staged last and returns at once. The Pending gives `result`
  // when all fetches are done. Throws Error when it cannot be started.
  virtual std::unique_ptr<Pending> pull(const Route& route,
                                        const at::Tensor& staged,
                                        std::vector<Fetch> fetches,
                                        at::Tensor result,
                                        const Purpose& purpose) = 0;

  // Ends every wait that is queued on this rank's device; what it computes then is worth nothing.
  // Any thread. Does not throw.
  virtual void release() = 0;
};

// Whether this build has them.
bool has_peer_copies();

// Over CUDA devices, for the ranks of the communicator's process group `group_name`. `reach`: a
// power of two; every aligned group of so many ranks shares a host and sees each other's devices
// (equal on all ranks). The communicator outlives it and counts its exchanges. Throws BadInput when
// this build has no CUDA.
std::unique_ptr<PeerCopies> make_peer_copies(Communicator& communicator,
                                             const std::string& group_name,
                                             at::Device device,
                                             std::int32_t reach);

}  // namespace nsp
