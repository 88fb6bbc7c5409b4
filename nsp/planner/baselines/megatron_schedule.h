// Megatron-Core's Dynamic Context Parallel scheduler, packing-aware (Megatron-LM, branch dev,
// commit d48bd6be, megatron/core/datasets/data_schedule_utils.py), as a planner.
//
// One micro-batch after another from what is left, longest sequence first. The longest founds a
// group of the smallest power of two that holds it under M tokens a rank; each next one goes, over
// its possible group sizes, where the largest work of any rank stays least (work of a rank: the sum
// of length^2 / size), on a group of that size with room or on a new one. Then, while ranks are
// empty, the oldest of the smallest groups doubles. Nothing but length^2 counts: no linear work, no
// communication, no hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace nsp {

struct MegatronGroup {
  std::int32_t first_rank = 0;
  std::int32_t size = 1;
  std::vector<std::size_t> members;  // positions in the given lengths, in order of placement
};

using MegatronBatch = std::vector<MegatronGroup>;

struct MegatronSettings {
  std::int32_t world = 1;
  std::int32_t largest = 1;   // group size; the world unless the model's heads allow less
  std::int64_t tokens = 0;    // M: most tokens a rank
  bool whole_slices = true;   // a rank's part of a sequence rounded up, as our layout may cut it;
                              // false: L / size, as the original, which pads lengths before
  std::int32_t smallest = 1;  // m: smallest group
};

// Ends a schedule early: no schedule of a larger load than `most` is wanted. Given a sequence and
// its group's size, `share` is what it adds to each rank at least, `alone` what a rank takes that
// has only this sequence, `fixed` what a micro-batch costs beside; nanoseconds of one layer.
struct MegatronLimit {
  std::function<std::int64_t(std::size_t, std::int32_t)> share;
  std::function<std::int64_t(std::size_t, std::int32_t)> alone;
  std::int64_t fixed = 0;
  std::int64_t most = 0;
};

// Micro-batches of lengths that are sorted longest first. Empty when one needs a larger group, or
// the limit ended it.
std::vector<MegatronBatch> megatron_schedule(const std::vector<std::int64_t>& lengths,
                                             const MegatronSettings& settings,
                                             const MegatronLimit* limit = nullptr);

}  // namespace nsp
