#include "nsp/comm/c10d.h"

#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "nsp/base/error.h"
#include "nsp/comm/device_events.h"
#include "nsp/comm/exchange.h"
#include "nsp/comm/gate.h"

namespace nsp {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// Where exchanges run. On a GPU that is a high-priority stream of our own, not the one on which
// torch would otherwise queue the collective behind attention; on a CPU there is none and the work
// is asynchronous.
class Queue {
 public:
  // The stream of `device`, taken from torch's pool at its first use.
  std::optional<c10::Stream> on(at::Device device) {
    if (device.is_cpu()) {
      return std::nullopt;
    }
    const std::scoped_lock lock(mutex_);
    if (!stream_) {
      const c10::impl::VirtualGuardImpl guard(device.type());
      stream_ = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/true);
    }
    return stream_;
  }

 private:
  std::mutex mutex_;
  std::optional<c10::Stream> stream_;
};

class C10dPending final : public Pending {
 public:
  C10dPending(c10::intrusive_ptr<c10d::Work> work,
              std::shared_ptr<c10::Event> done,
              at::Tensor sent,
              at::Tensor received,
              Exchange exchange)
      : work_(std::move(work)),
        done_(std::move(done)),
        sent_(std::move(sent)),
        received_(std::move(received)),
        exchange_(exchange) {}
  // A pass that ends with an exception drops it: the memory goes back to a stream that has waited.
  ~C10dPending() override {
    try {
      if (done_) {
        done_->block(current_stream(received_.device()));
      }
    } catch (const std::exception&) {  // a device in error
    }
  }
  C10dPending(const C10dPending&) = delete;
  C10dPending& operator=(const C10dPending&) = delete;
  C10dPending(C10dPending&&) = delete;
  C10dPending& operator=(C10dPending&&) = delete;

  // On a GPU both tensors belong to the stream that waits here, so neither is reused before the
  // exchange is done.
  at::Tensor wait() override {
    try {
      if (done_) {
        done_->block(current_stream(received_.device()));
        done_.reset();
      } else {
        const Progress::Waiting waiting(exchange_.communicator.progress);
        work_->wait();
      }
    } catch (const std::exception& cause) {
      exchange_.fail(cause);
    }
    exchange_.expect_running();
    sent_.reset();
    return std::move(received_);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::shared_ptr<c10::Event> done_;
  at::Tensor sent_;
  at::Tensor received_;
  Exchange exchange_;
};

// Rows of a GPU over a group that moves host memory only (several ranks a GPU): through the host,
// there and back.
class StagedPending final : public Pending {
 public:
  StagedPending(std::unique_ptr<Pending> host, at::Device device)
      : host_(std::move(host)), device_(device) {}

  at::Tensor wait() override { return host_->wait().to(device_); }

 private:
  std::unique_ptr<Pending> host_;
  at::Device device_;
};

class C10dCommunicator final : public Communicator {
 public:
  explicit C10dCommunicator(Group group) : group_(std::move(group)) {}

  std::int32_t rank() const override { return group_->getRank(); }
  std::int32_t size() const override { return group_->getSize(); }

  std::unique_ptr<Pending> exchange(at::Tensor rows,
                                    std::vector<std::int64_t> send_counts,
                                    std::vector<std::int64_t> receive_counts,
                                    const Purpose& purpose) override {
    if (!rows.is_cpu() && !moves_device_memory_) {
      const at::Device device = rows.device();
      auto host =
          this->exchange(rows.cpu(), std::move(send_counts), std::move(receive_counts), purpose);
      return std::make_unique<StagedPending>(std::move(host), device);
    }
    const Exchange exchange{*this, purpose};
    exchange.expect_running();
    auto shape = rows.sizes().vec();
    shape[0] = std::accumulate(receive_counts.begin(), receive_counts.end(), std::int64_t{0});
    at::Tensor received = at::empty(shape, rows.options());
    count(rows, send_counts);
    try {
      const Progress::Waiting waiting(progress);  // a first call may set up connections
      const std::optional<c10::Stream> stream = queue_.on(rows.device());
      c10d::AllToAllOptions options;
      options.asyncOp = !stream.has_value();
      const c10::Stream compute = current_stream(rows.device());
      c10::OptionalStreamGuard guard;
      if (stream) {
        events_.record(compute)->block(*stream);
        guard.reset_stream(*stream);
        if (gate_) {
          gate_->open(*stream);
        }
      }
      // The backend itself: the group would pass the same call through the dispatcher.
      auto work = group_->getBackend(rows.device().type())
                      ->alltoall_base(received, rows, receive_counts, send_counts, options);
      std::shared_ptr<c10::Event> done;
      if (stream) {
        done = events_.record(*stream);
        in_flight.add([done] { return is_done(*done); }, progress.place());
        if (gate_) {
          gate_->hold(compute);
        }
      }
      return std::make_unique<C10dPending>(
          std::move(work), std::move(done), std::move(rows), std::move(received), exchange);
    } catch (const std::exception& cause) {
      exchange.fail(cause);
    }
  }

  // A host that is elsewhere may read what a device computed from an exchange that was cut short:
  // only one that is in our code, which will throw, is released.
  void stop() override {
    stopped = true;
    if (progress.place().inside) {
      if (peers) {
        peers->release();
      }
      try {
        group_->abort();
      } catch (const std::exception&) {  // a group that cannot; its own timeout remains
      }
    }
  }

 private:
  void count(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts) {
    const std::int64_t all = rows.size(0);
    const std::int64_t own = send_counts[static_cast<std::size_t>(rank())];
    const auto row_bytes =
        all == 0 ? 0 : rows.numel() / all * static_cast<std::int64_t>(rows.element_size());
    ++exchanges;
    bytes += (all - own) * row_bytes;
  }

  Group group_;
  bool moves_device_memory_ = group_->getBackendName() == "nccl";
  Queue queue_;
  DeviceEvents events_;
  std::optional<Gate> gate_ = wants_gate() ? std::optional<Gate>(std::in_place) : std::nullopt;
};

}  // namespace

std::unique_ptr<Communicator> make_c10d_communicator(const std::string& group_name) {
  Group group;
  try {
    group = c10d::resolve_process_group(group_name);
  } catch (const std::exception&) {
    bad_input("group_name", group_name, "no process group of this process has this name");
  }
  return std::make_unique<C10dCommunicator>(std::move(group));
}

}  // namespace nsp
