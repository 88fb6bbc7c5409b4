// Megatron-Core's Dynamic Context Parallel scheduler (megatron_schedule.h) as a planner: a round a
// micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/planner/problem.h"

namespace nsp {

// The schedule of least load over M (nine parts of the token budget) and m (1, 4, 16): a fair
// baseline tunes both. `most` prunes: no plan of a larger load is returned. May return no rounds.
std::vector<Solution> megatron_dcp(const Problem& batch, std::int64_t most = INT64_MAX);

}  // namespace nsp
