// Waves: a level that its schedule cuts by length runs as two, so that the short sequences' launch
// hides the prologue of the long ones, and the long ones' launch the epilogue of the short. Derived
// from the round alone, so that every rank issues the same waves, whatever it holds.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "nsp/plan/plan.h"
#include "nsp/plan/way.h"

namespace nsp {

struct LevelWave {
  std::int32_t degree = 1;
  Wave wave = Wave::kLong;

  auto operator<=>(const LevelWave&) const = default;
};

inline LevelWave level_of(const Issue& issue) {
  return {.degree = issue.degree, .wave = issue.wave};
}

// Of a placement under these cuts.
Wave wave_of(const Placement& placement, const std::vector<LevelCut>& cuts);

// Those above degree 1 that have placements: root to leaf, of a level the short one first.
std::vector<LevelWave> exchanged_waves(const Round& round);

// Those in which some placement of the round runs this way, the short one first. Never none: a way
// that is not used has the long one.
std::vector<Wave> waves_of(const Way& way, const Round& round);

// Empty when the round's cuts part levels above 1, each once, root to leaf, and leave no wave
// without sequences; otherwise what is wrong.
std::string find_cut_fault(const Round& round);

}  // namespace nsp
