#include "nsp/plan/explain.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <tuple>

namespace nsp {
namespace {

constexpr std::int64_t kK = 1024;

struct Sum {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
};

// Length classes grow by four: they part what one rank holds from what needs a group.
constexpr std::array<std::int64_t, 5> kClassEnds = {kK, 4 * kK, 16 * kK, 64 * kK, 256 * kK};

std::size_t length_class(std::int64_t tokens) {
  return static_cast<std::size_t>(std::ranges::lower_bound(kClassEnds, tokens) -
                                  kClassEnds.begin());
}

std::string class_name(std::size_t index) {
  if (index == 0) {
    return fmt::format("up to {}K", kClassEnds[0] / kK);
  }
  if (index == kClassEnds.size()) {
    return fmt::format("above {}K", kClassEnds.back() / kK);
  }
  return fmt::format("{}K-{}K", kClassEnds[index - 1] / kK, kClassEnds[index] / kK);
}

// Why this degree: the budget forces it, or the planner chose it to balance the load.
std::string reason(const Plan& plan, std::int32_t degree, std::int64_t shortest) {
  if (degree == 1) {
    return "one rank holds it: no communication";
  }
  if (shortest > plan.token_budget * (degree / 2)) {
    return fmt::format("needs it: {} tokens pass the budget of {} rank{}",
                       shortest,
                       degree / 2,
                       degree == 2 ? "" : "s");
  }
  return "chosen: spreads its seconds over more ranks";
}

}  // namespace

std::vector<ClassShare> explain(const Plan& plan) {
  std::map<std::tuple<std::size_t, std::int32_t, Backend>, Sum> sums;
  for (const Round& round : plan.rounds) {
    for (const Placement& p : round.placements) {
      Sum& sum = sums[{length_class(p.tokens), -p.node.degree, p.backend}];
      ++sum.sequences;
      sum.tokens += p.tokens;
      sum.shortest = std::min(sum.shortest, p.tokens);
    }
  }
  std::vector<ClassShare> shares;
  for (const auto& [key, sum] : sums) {
    const auto& [length, degree, backend] = key;
    shares.push_back({.length = class_name(length),
                      .degree = -degree,
                      .backend = backend,
                      .sequences = sum.sequences,
                      .tokens = sum.tokens,
                      .why = reason(plan, -degree, sum.shortest)});
  }
  return shares;
}

}  // namespace nsp
