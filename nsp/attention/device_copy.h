// Host data for a device.
#pragma once

#include <ATen/core/Tensor.h>

namespace nsp {

// `host` on the device, through pinned memory: the host does not wait. `host` itself for a CPU.
at::Tensor copy_without_waiting(const at::Tensor& host, at::Device device);

}  // namespace nsp
