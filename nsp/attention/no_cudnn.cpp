// Stands for cudnn.cpp in builds without a CUDA toolkit or cudnn-frontend.
#include "nsp/attention/cudnn.h"
#include "nsp/base/error.h"

namespace nsp {

bool cudnn_built() {
  return false;
}
bool cudnn_supported() {
  return false;
}

std::unique_ptr<AttentionKernel> make_cudnn_attention() {
  bad_input("kernel", "cudnn", "this build has none; build with -DNSP_CUDA=ON, or use flash");
}

}  // namespace nsp
