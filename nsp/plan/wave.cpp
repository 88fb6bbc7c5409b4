#include "nsp/plan/wave.h"

#include <algorithm>
#include <functional>
#include <map>

namespace nsp {
namespace {

struct Waves {
  bool is_short = false;
  bool is_long = false;

  void add(Wave wave) { (wave == Wave::kShort ? is_short : is_long) = true; }
};

}  // namespace

Wave wave_of(const Placement& placement, const std::vector<LevelCut>& cuts) {
  for (const LevelCut& cut : cuts) {
    if (cut.degree == placement.node.degree) {
      return placement.tokens <= cut.tokens ? Wave::kShort : Wave::kLong;
    }
  }
  return Wave::kLong;
}

std::vector<LevelWave> exchanged_waves(const Round& round) {
  std::map<std::int32_t, Waves, std::greater<>> levels;
  for (const Placement& placement : round.placements) {
    if (placement.node.degree > 1) {
      levels[placement.node.degree].add(wave_of(placement, round.schedule.cuts));
    }
  }
  std::vector<LevelWave> waves;
  for (const auto& [degree, level] : levels) {
    if (level.is_short) {
      waves.push_back({.degree = degree, .wave = Wave::kShort});
    }
    if (level.is_long) {
      waves.push_back({.degree = degree, .wave = Wave::kLong});
    }
  }
  return waves;
}

std::vector<Wave> waves_of(const Way& way, const Round& round) {
  Waves found;
  for (const Placement& placement : round.placements) {
    if (way_of(placement) == way) {
      found.add(wave_of(placement, round.schedule.cuts));
    }
  }
  if (!found.is_short) {
    return {Wave::kLong};
  }
  return found.is_long ? std::vector<Wave>{Wave::kShort, Wave::kLong}
                       : std::vector<Wave>{Wave::kShort};
}

std::string find_cut_fault(const Round& round) {
  const std::vector<LevelCut>& cuts = round.schedule.cuts;
  if (cuts.empty()) {
    return "";
  }
  const auto misplaced =
      std::ranges::adjacent_find(cuts, std::ranges::less_equal{}, &LevelCut::degree);
  if (misplaced != cuts.end() || cuts.back().degree <= 1) {
    return "cuts must name degrees above 1, each once, the largest first";
  }
  const std::vector<LevelWave> waves = exchanged_waves(round);
  for (const LevelCut& cut : cuts) {
    for (const Wave wave : {Wave::kShort, Wave::kLong}) {
      if (std::ranges::find(waves, LevelWave{cut.degree, wave}) == waves.end()) {
        return "the cut of degree " + std::to_string(cut.degree) + " at " +
               std::to_string(cut.tokens) + " tokens leaves no sequence that is " +
               (wave == Wave::kShort ? "that short" : "longer");
      }
    }
  }
  return "";
}

}  // namespace nsp
