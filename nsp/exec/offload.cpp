#include "nsp/exec/offload.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;

// Between the bytes of a tensor and as many of the chunks'.
void copy_bytes(const Tensor& tensor, const std::vector<Tensor>& chunks, bool to_host) {
  const Tensor bytes = tensor.view({-1}).view(at::kByte);
  std::int64_t begin = 0;
  for (const Tensor& chunk : chunks) {
    const std::int64_t count = std::min(HostChunks::kBytes, bytes.size(0) - begin);
    const Tensor here = part(bytes, 0, begin, count), there = part(chunk, 0, 0, count);
    (to_host ? there : here).copy_(to_host ? here : there, /*non_blocking=*/true);
    begin += count;
  }
}

}  // namespace

OffloadedRows::OffloadedRows(Offload& offload, const std::vector<Tensor>& rows)
    : offload_(offload),
      device_(at::cat(rows)),
      sizes_(device_.sizes().vec()),
      options_(device_.options()),
      bytes_(static_cast<std::int64_t>(device_.nbytes())),
      chunks_(offload.chunks_.take(bytes_, !device_.is_cpu())) {}

OffloadedRows::~OffloadedRows() {
  try {
    leave();
  } catch (const std::exception&) {
    copied_.reset();  // a device in error
  }
  offload_.chunks_.give_back(std::move(chunks_));
}

void OffloadedRows::restore(const std::vector<Tensor>& to) {
  const std::scoped_lock lock(offload_.mutex_);
  if (!device_.defined()) {
    fetch();
  }
  if (copied_) {
    copied_->block(current_stream(device_.device()));
  }
  std::int64_t row = 0;
  for (const Tensor& rows : to) {
    rows.copy_(part(device_, 0, row, rows.size(0)));
    row += rows.size(0);
  }
  leave();
  const std::shared_ptr<OffloadedRows> next = before_.lock(), ahead = offload_.ahead_.lock();
  if (ahead && ahead != next) {
    ahead->leave();
  }
  if (next && !next->device_.defined()) {
    next->fetch();
  }
  offload_.ahead_ = next;
}

// On the copy stream, behind what the compute stream has to do with device_ until now.
void OffloadedRows::copy(bool to_host) {
  if (device_.is_cpu()) {
    copy_bytes(device_, chunks_, to_host);
    return;
  }
  home_ = current_stream(device_.device());
  const c10::Stream copies = offload_.stream(device_.device());
  offload_.events_.record(*home_)->block(copies);
  const c10::StreamGuard guard(copies);
  copy_bytes(device_, chunks_, to_host);
  copied_ = offload_.events_.record(copies);
}

void OffloadedRows::fetch() {
  device_ = at::empty(sizes_, options_);
  copy(/*to_host=*/false);
}

void OffloadedRows::leave() {
  if (copied_ && home_) {
    copied_->block(*home_);
    copied_.reset();
  }
  device_.reset();
}

std::shared_ptr<OffloadedRows> Offload::send(const std::vector<Tensor>& rows) {
  const std::scoped_lock lock(mutex_);
  if (const auto last = last_.lock()) {
    last->leave();
  }
  auto sent = std::make_shared<OffloadedRows>(*this, rows);
  sent->copy(/*to_host=*/true);
  sent->before_ = std::exchange(last_, sent);
  return sent;
}

c10::Stream Offload::stream(at::Device device) {
  if (!stream_ || stream_->device() != device) {
    stream_ = c10::impl::VirtualGuardImpl(device.type())
                  .getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  }
  return *stream_;
}

}  // namespace nsp
