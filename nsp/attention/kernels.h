// Attention kernels by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <c10/core/Device.h>

#include "nsp/attention/attention.h"

namespace nsp {

// cpu for CPU tensors; on CUDA cudnn where it was built in and the device runs it, else flash.
std::string_view default_kernel(at::Device device);

// cpu, flash or cudnn; empty: the default. Throws BadInput for another name, or one that does not
// run on the device.
std::unique_ptr<AttentionKernel> make_attention(at::Device device, std::string_view kernel = "");

}  // namespace nsp
