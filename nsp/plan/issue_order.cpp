#include "nsp/plan/issue_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

namespace nsp {
namespace {

std::string_view phase_name(Phase phase) {
  constexpr std::string_view kNames[] = {"prologue", "compute", "epilogue"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string text(const Issue& issue) {
  return std::string(phase_name(issue.phase)) + ":" + std::to_string(issue.degree);
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
  const std::vector<std::int32_t> degrees = exchanged_degrees(round);
  std::vector<Issue> order;
  for (const std::int32_t degree : degrees) {
    order.push_back({Phase::kPrologue, degree});
  }
  order.push_back({Phase::kCompute, 1});
  for (const std::int32_t degree : degrees) {
    order.push_back({Phase::kCompute, degree});
    order.push_back({Phase::kEpilogue, degree});
  }
  return order;
}

void set_default_schedule(Round& round, std::int32_t world) {
  round.schedule.order = default_order(round);
  round.schedule.leaf_first.assign(static_cast<std::size_t>(world), 0);
  round.schedule.transports.clear();
  for (const std::int32_t degree : exchanged_degrees(round)) {
    round.schedule.transports.push_back({.degree = degree, .transport = Transport::kCollective});
  }
}

// Each level is a small automaton: the next phase it expects. Leaves (degree 1) expect one compute.
std::string find_order_fault(const Round& round, const std::vector<Issue>& order) {
  std::map<std::int32_t, std::vector<Phase>> expected;  // reversed: the next phase is at the back
  expected[1] = {Phase::kCompute};
  for (const std::int32_t degree : exchanged_degrees(round)) {
    expected[degree] = {Phase::kEpilogue, Phase::kCompute, Phase::kPrologue};
  }
  for (const Issue& issue : order) {
    const auto it = expected.find(issue.degree);
    if (it == expected.end()) {
      return text(issue) + " is issued, but no placement has degree " +
             std::to_string(issue.degree);
    }
    if (it->second.empty() || it->second.back() != issue.phase) {
      return text(issue) + " is issued " +
             (it->second.empty() ? "after the level is done"
                                 : "where " + text({it->second.back(), issue.degree}) + " is due");
    }
    it->second.pop_back();
  }
  for (const auto& [degree, left] : expected) {
    if (!left.empty()) {
      return text({left.back(), degree}) + " is never issued";
    }
  }
  return "";
}

}  // namespace nsp
