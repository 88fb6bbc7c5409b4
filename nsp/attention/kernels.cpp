#include "nsp/attention/kernels.h"

#include "nsp/attention/cudnn.h"
#include "nsp/base/error.h"

namespace nsp {

std::string_view default_kernel(at::Device device) {
  if (device.is_cpu()) {
    return "cpu";
  }
  return cudnn_supported() ? "cudnn" : "flash";
}

std::unique_ptr<AttentionKernel> make_attention(at::Device device, std::string_view kernel) {
  const std::string_view chosen = kernel.empty() ? default_kernel(device) : kernel;
  if (chosen != "cpu" && chosen != "flash" && chosen != "cudnn") {
    bad_input("kernel", chosen, "must be cpu, flash or cudnn");
  }
  if (device.is_cpu() != (chosen == "cpu")) {
    bad_input("kernel", chosen, "does not run on device " + device.str());
  }
  if (chosen == "cpu") {
    return make_cpu_attention();
  }
  return chosen == "flash" ? make_flash_attention() : make_cudnn_attention();
}

}  // namespace nsp
