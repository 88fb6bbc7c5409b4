// Bytes of buffers by formula: what the executor holds beside the layer's own q, k, v, out and
// their gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/attention/attention.h"
#include "nsp/comm/progress.h"
#include "nsp/exec/block.h"
#include "nsp/exec/heads.h"
#include "nsp/exec/program.h"
#include "nsp/plan/way.h"

namespace nsp {

// One value of a row.
struct ValueShape {
  std::int64_t head_dim = 1;
  std::int64_t bytes = 2;
};

// Of one block: most held at once during a stage, and held after it.
struct StageBytes {
  std::int64_t peak = 0;
  std::int64_t after = 0;
};

// Forward, `after` of the last stage is what the block keeps for backward (q, k, v and out in head
// layout; lse only where the executor merges it: ring); backward that is there from the start and
// not counted.
StageBytes exchange_bytes(
    const Block& block, const Heads& heads, const ValueShape& value, Stage stage, bool backward);

// What this rank keeps of one layer from a checkpointed forward pass to its backward: out and
// log-sum-exp of the round's saved placements (q, k and v too of those marked save_qkv); of
// offloaded ones out is on the host.
std::int64_t stash_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value);
std::int64_t offload_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value);

// Most that a pass over one round holds at once on this rank in exchange buffers, in its issue
// order. Forward, with what it keeps for backward.
std::int64_t exchange_bytes(const ProgramRound& round,
                            const Heads& heads,
                            const ValueShape& value,
                            bool backward);

// Bytes of every rank's arena (PeerCopies) that a pass over the round, forward or backward, takes
// at once: all its exchanges by peer copies, none of which then waits for the memory of another.
// Equal on all ranks.
std::int64_t arena_bytes(const ProgramRound& round, const Heads& heads, const ValueShape& value);

// The largest over all plans that use `ways` and give a rank at most `tokens` rows in a round:
// forward or backward; of plans with saved placements, too, if `saves`. Sequences are taken as
// long: each further one adds a row or two (pieces differ by one), and to the workspace of a kernel
// that pads sequences its padding. Ulysses levels up to `reach` go by peer copies.
struct MemoryBound {
  std::int64_t exchange_bytes = 0;
  std::int64_t workspace_bytes = 0;
  // Where no level of a plan has more rows on one rank than another has in all; grown when a plan
  // needs more.
  std::int64_t arena_bytes = 0;
};
MemoryBound memory_bound(const AttentionKernel& kernel,
                         const Heads& heads,
                         const ValueShape& value,
                         std::int64_t tokens,
                         const std::vector<Way>& ways,
                         std::int32_t reach = 1,
                         bool saves = false);

}  // namespace nsp
