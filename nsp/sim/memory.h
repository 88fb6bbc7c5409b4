// An estimate of what a step holds on each rank beside model state (parameters, gradients,
// optimizer states, gathered parameters).
//
// A layer keeps for backward, values a token of the rank:
//   dense      8 hidden + 4 heads head_dim + top_k (2 hidden + 4 intermediate), top_k 1 if dense
//   attention  of tokens exchanged: q, k, v and output once more in head layout
// (measured on H200 without recompilation: 181 and 361 KB a token for the two Qwen3 shapes; the
// formula gives 180 and 360). With checkpointing a layer keeps its input, and with marks the output
// and log-sum-exp of what is saved (save_qkv: also q, k, v); one layer at a time keeps the rest. On
// top comes the workspace of attention's backward: 12 bytes a token, head and head_dim of the
// largest launch.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"
#include "nsp/sim/stages.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// Most bytes by rank over the rounds.
std::vector<std::int64_t> memory_bytes(const Plan& plan,
                                       const ModelShape& shape,
                                       Checkpointing checkpointing);

}  // namespace nsp
