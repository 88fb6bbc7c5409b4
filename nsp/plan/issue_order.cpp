#include "nsp/plan/issue_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "nsp/plan/plan_json.h"
#include "nsp/plan/wave.h"

namespace nsp {
namespace {

// A wave's place in the order of levels: leaves last.
struct RootToLeaf {
  bool operator()(const LevelWave& a, const LevelWave& b) const {
    return std::pair(b.degree, b.wave) < std::pair(a.degree, a.wave);
  }
};

std::string text(Phase phase, const LevelWave& level) {
  return text_of({.phase = phase, .degree = level.degree, .wave = level.wave});
}

std::string unknown(const Issue& issue) {
  const std::string degree = std::to_string(issue.degree);
  return text_of(issue) + " is issued, but no placement has degree " + degree +
         (issue.wave == Wave::kShort ? " and is short under a cut of it" : "");
}

}  // namespace

std::vector<std::int32_t> exchanged_degrees(const Round& round) {
  std::set<std::int32_t, std::greater<>> degrees;
  for (const Placement& placement : round.placements) {
    if (placement.node.degree > 1) {
      degrees.insert(placement.node.degree);
    }
  }
  return {degrees.begin(), degrees.end()};
}

std::vector<Issue> default_order(const Round& round) {
  const std::vector<LevelWave> waves = exchanged_waves(round);
  std::vector<Issue> order;
  for (const auto& [degree, wave] : waves) {
    order.push_back({Phase::kPrologue, degree, wave});
  }
  order.push_back({Phase::kCompute, 1});
  for (const auto& [degree, wave] : waves) {
    order.push_back({Phase::kCompute, degree, wave});
    order.push_back({Phase::kEpilogue, degree, wave});
  }
  return order;
}

void set_default_schedule(Round& round, std::int32_t world) {
  round.schedule.cuts.clear();
  round.schedule.order = default_order(round);
  round.schedule.leaf_first.assign(static_cast<std::size_t>(world), 0);
  round.schedule.transports.clear();
  for (const std::int32_t degree : exchanged_degrees(round)) {
    round.schedule.transports.push_back({.degree = degree, .transport = Transport::kCollective});
  }
}

// Each wave of a level is a small automaton: the next phase it expects. Leaves (degree 1) expect
// one compute.
std::string find_order_fault(const Round& round, const std::vector<Issue>& order) {
  std::map<LevelWave, std::vector<Phase>, RootToLeaf> expected;  // the next phase is at the back
  expected[{}] = {Phase::kCompute};
  for (const LevelWave& level : exchanged_waves(round)) {
    expected[level] = {Phase::kEpilogue, Phase::kCompute, Phase::kPrologue};
  }
  for (const Issue& issue : order) {
    const auto it = expected.find(level_of(issue));
    if (it == expected.end()) {
      return unknown(issue);
    }
    if (it->second.empty() || it->second.back() != issue.phase) {
      return text_of(issue) + " is issued " +
             (it->second.empty() ? "after the level is done"
                                 : "where " + text(it->second.back(), it->first) + " is due");
    }
    it->second.pop_back();
  }
  for (const auto& [level, left] : expected) {
    if (!left.empty()) {
      return text(left.back(), level) + " is never issued";
    }
  }
  return "";
}

}  // namespace nsp
