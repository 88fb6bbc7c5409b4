#include "nsp/comm/device_events.h"

#include <mutex>
#include <utility>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace nsp {

struct DeviceEvents::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<c10::Event>> free;

  std::unique_ptr<c10::Event> take(c10::DeviceType type) {
    const std::scoped_lock lock(mutex);
    if (free.empty()) {
      return std::make_unique<c10::Event>(type);
    }
    std::unique_ptr<c10::Event> event = std::move(free.back());
    free.pop_back();
    return event;
  }
  void give_back(c10::Event* event) {
    const std::scoped_lock lock(mutex);
    free.emplace_back(event);
  }
};

DeviceEvents::DeviceEvents() : pool_(std::make_shared<Pool>()) {}

std::shared_ptr<c10::Event> DeviceEvents::record(const c10::Stream& stream) {
  std::unique_ptr<c10::Event> event = pool_->take(stream.device_type());
  event->record(stream);
  return {event.release(), [pool = pool_](c10::Event* used) { pool->give_back(used); }};
}

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

bool is_done(const c10::Event& event) {
  try {
    return event.query();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace nsp
