// cuDNN's attention, where it was built in.
#pragma once

#include <memory>

#include "nsp/attention/attention.h"

namespace nsp {

// Whether this build has it (CMake found a CUDA toolkit and cudnn-frontend).
bool cudnn_built();
// Whether the current CUDA device runs it: compute capability 9.0 or newer. False where not built.
bool cudnn_supported();

// For CUDA tensors: bfloat16, float16. Throws BadInput where not built.
std::unique_ptr<AttentionKernel> make_cudnn_attention();

}  // namespace nsp
