// Device events, used again and again: making one costs the host as much as recording it. A stream
// waits for what an event marked when the wait was queued (cudaStreamWaitEvent), so an event may be
// recorded anew while streams still wait; only who queries it needs it unchanged, and owns it.
#pragma once

#include <memory>

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace nsp {

// Thread-safe.
class DeviceEvents {
 public:
  DeviceEvents();
  // An event that marks the work on `stream` up to now. It is recorded anew only after its last
  // owner is gone; who owns it may outlive this object.
  std::shared_ptr<c10::Event> record(const c10::Stream& stream);

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

c10::Stream current_stream(at::Device device);

// False of a device in error, which finishes nothing.
bool is_done(const c10::Event& event);

}  // namespace nsp
