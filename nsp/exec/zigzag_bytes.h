// Bytes of buffers of the zigzag backends by formula: their steps, on numbers.
#pragma once

#include "nsp/exec/buffer_bytes.h"

namespace nsp {

// As exchange_bytes, for a block of gather, ring or usp.
StageBytes zigzag_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward);

}  // namespace nsp
