// What one round costs, ready to be simulated: the phases of every node by level, dense seconds by
// rank. Integer nanoseconds of one layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"
#include "nsp/plan/wave.h"

namespace nsp {

struct NodeTimes {
  PhaseCost cost{};  // summed over the node's ways
  bool active = false;
  Backend backend = Backend::kLocal;  // of the first placement
};

// Of one wave of a level.
struct LevelTimes {
  std::int32_t degree = 1;
  Wave wave = Wave::kLong;
  std::vector<NodeTimes> nodes;  // by first_rank / degree
};

inline std::int64_t pass_of(const Passes& passes, bool backward) {
  return backward ? passes.backward : passes.forward;
}
const Passes& phase_of(const PhaseCost& cost, Phase phase);

// Where this wave of a level stands; there is one.
std::size_t place_of(const std::vector<LevelTimes>& levels, const LevelWave& wave);

// Levels one after the other, each phase after the one before it.
std::vector<Issue> serial_order(const std::vector<LevelTimes>& levels);

struct RoundTimes {
  std::vector<LevelTimes> levels;     // exchanged waves (wave.h), then the leaves
  std::vector<NodeTimes> leaf_first;  // by rank: leaves before everything else; empty: none
  std::vector<Passes> dense;          // by rank, fixed part included; without experts if ep > 1
  std::int32_t ep = 1;               // ranks of an expert-parallel group, which meet in every layer
  std::vector<Passes> experts;       // ep > 1: by group, on each of its ranks
  std::vector<std::int64_t> tokens;  // by rank
};

// Throws BadInput for a placement outside the tree, a way without cost, or groups that do not
// divide the world.
RoundTimes round_times(const CostModel& model, const Round& round, std::int32_t world);

// Whether a placement counts; may change what its sequence costs.
using Counts = std::function<bool(const Placement&, SequenceCost&)>;

// The levels of the placements that count: nodes without any are not active. Leaves that run before
// everything else are left out: leaf_first_times has them.
std::vector<LevelTimes> level_times(const CostModel& model,
                                    const Round& round,
                                    std::int32_t world,
                                    const Counts& counts);
std::vector<NodeTimes> leaf_first_times(const CostModel& model,
                                        const Round& round,
                                        std::int32_t world,
                                        const Counts& counts);

}  // namespace nsp
