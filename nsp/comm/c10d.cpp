#include "nsp/comm/c10d.h"

#include <fmt/format.h>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "nsp/base/error.h"

namespace nsp {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// Where an exchange failed, for a person who reads one rank's log.
struct Place {
  std::int32_t rank;
  std::int32_t size;
  Purpose purpose;

  [[noreturn]] void fail(const std::exception& cause) const {
    throw Error(fmt::format("rank {} of {}: the exchange of the {} of level {} failed: {}",
                            rank,
                            size,
                            purpose.phase,
                            purpose.degree,
                            cause.what()));
  }
};

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

// Device events, used again and again: making one costs the host as much as recording it.
class Events {
 public:
  // An event that marks the work on `stream` up to now.
  c10::Event record(const c10::Stream& stream) {
    c10::Event event = take(stream.device_type());
    event.record(stream);
    return event;
  }
  // `waiting` waits for the event, which may be recorded anew afterwards.
  void block(c10::Event event, const c10::Stream& waiting) {
    event.block(waiting);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  c10::Event take(c10::DeviceType type) {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      return c10::Event(type);
    }
    c10::Event event = std::move(free_.back());
    free_.pop_back();
    return event;
  }

  std::mutex mutex_;
  std::vector<c10::Event> free_;
};

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

class C10dPending final : public Pending {
 public:
  C10dPending(c10::intrusive_ptr<c10d::Work> work,
              Events& events,
              std::optional<c10::Event> done,
              at::Tensor sent,
              at::Tensor received,
              Place place)
      : work_(std::move(work)),
        events_(events),
        done_(std::move(done)),
        sent_(std::move(sent)),
        received_(std::move(received)),
        place_(place) {}

  // On a GPU both tensors belong to the stream that waits here, so neither is reused before the
  // exchange is done.
  at::Tensor wait() override {
    try {
      if (done_) {
        events_.block(std::move(*done_), current_stream(received_.device()));
        done_.reset();
      } else {
        work_->wait();
      }
    } catch (const std::exception& cause) {
      place_.fail(cause);
    }
    sent_.reset();
    return std::move(received_);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  Events& events_;
  std::optional<c10::Event> done_;
  at::Tensor sent_;
  at::Tensor received_;
  Place place_;
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
      auto host = exchange(rows.cpu(), std::move(send_counts), std::move(receive_counts), purpose);
      return std::make_unique<StagedPending>(std::move(host), device);
    }
    const Place place{rank(), size(), purpose};
    auto shape = rows.sizes().vec();
    shape[0] = std::accumulate(receive_counts.begin(), receive_counts.end(), std::int64_t{0});
    at::Tensor received = at::empty(shape, rows.options());
    count(rows, send_counts);
    try {
      const std::optional<c10::Stream> stream = queue_.on(rows.device());
      c10d::AllToAllOptions options;
      options.asyncOp = !stream.has_value();
      c10::OptionalStreamGuard guard;
      if (stream) {
        events_.block(events_.record(current_stream(rows.device())), *stream);
        guard.reset_stream(*stream);
      }
      // The backend itself: the group would pass the same call through the dispatcher.
      auto work = group_->getBackend(rows.device().type())
                      ->alltoall_base(received, rows, receive_counts, send_counts, options);
      std::optional<c10::Event> done;
      if (stream) {
        done = events_.record(*stream);
      }
      return std::make_unique<C10dPending>(
          std::move(work), events_, std::move(done), std::move(rows), std::move(received), place);
    } catch (const std::exception& cause) {
      place.fail(cause);
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
  Events events_;
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
