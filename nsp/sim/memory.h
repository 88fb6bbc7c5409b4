// An estimate of what a step holds on each rank beside model state (parameters, gradients,
// optimizer states, gathered parameters): rows of each kind (rank_rows.h) times their bytes
// (row_bytes.h).
//
// A layer keeps what its backward needs; with checkpointing its input, and with marks what they
// save, while one layer at a time has the rest, and is the one whose offloaded output is on its way
// to or from the host. On top come the gradients of the layer that is in
// its backward: the most of those at its end and of those around attention, whose workspace takes
// 12 bytes a row, head and head_dim of the largest launch.
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
