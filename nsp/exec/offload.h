// Attention output that waits for its layer's second forward pass in host memory.
//
//   compute   layer 1 |copy  layer 2 |copy ...        layer 2 again |restore  layer 1 again
//   |restore copies             to the host    to the host                    from the host
//
// Copies go by a stream of their own, both ways, in the order of issue: host memory is written
// again only behind the copy that read it. The host waits for nothing. The device holds the rows of
// one call at a time: when a call's rows are sent, the compute stream first waits until those of
// the call before are gone, and takes their memory; what is sent last stays until it is restored.
// To restore a call starts to bring back the one that was sent before it, as backward will want
// that next; in any other order the copy starts when it is wanted.
//
// CPU tensors are copied to other host memory at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "nsp/comm/device_events.h"
#include "nsp/exec/host_chunks.h"

namespace nsp {

class Offload;

// The rows of one call, as one tensor. Its host memory goes back with it.
class OffloadedRows {
 public:
  OffloadedRows(Offload& offload, const std::vector<at::Tensor>& rows);
  ~OffloadedRows();
  OffloadedRows(const OffloadedRows&) = delete;
  OffloadedRows& operator=(const OffloadedRows&) = delete;
  OffloadedRows(OffloadedRows&&) = delete;
  OffloadedRows& operator=(OffloadedRows&&) = delete;

  std::int64_t bytes() const { return bytes_; }
  // Writes them, in turn, to tensors of the sizes that were sent; as often as is wanted.
  void restore(const std::vector<at::Tensor>& to);

 private:
  friend class Offload;

  void copy(bool to_host);
  void fetch();
  // Forgets the device's copy once no copy reads or writes it.
  void leave();

  Offload& offload_;
  at::Tensor device_;                     // undefined while the rows are on the host alone
  std::shared_ptr<c10::Event> copied_{};  // of the last copy; none on a CPU
  std::optional<c10::Stream> home_{};     // whose order device_'s memory follows
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
  std::int64_t bytes_;
  std::vector<at::Tensor> chunks_;
  std::weak_ptr<OffloadedRows> before_{};
};

// Of one World; outlives what it was sent. Thread-safe.
class Offload {
 public:
  // Copies these rows, all of one width and type.
  std::shared_ptr<OffloadedRows> send(const std::vector<at::Tensor>& rows);
  // Host memory that is held for this, in use or not.
  std::int64_t host_bytes() const { return chunks_.bytes(); }

 private:
  friend class OffloadedRows;

  c10::Stream stream(at::Device device);

  std::mutex mutex_;
  HostChunks chunks_;
  DeviceEvents events_;
  std::optional<c10::Stream> stream_;
  std::weak_ptr<OffloadedRows> last_;   // sent
  std::weak_ptr<OffloadedRows> ahead_;  // brought back before it is wanted
};

}  // namespace nsp
