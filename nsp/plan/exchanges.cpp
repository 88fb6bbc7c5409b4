#include "nsp/plan/exchanges.h"

#include <set>
#include <tuple>

namespace nsp {
namespace {

struct RootToLeaf {
  bool operator()(const Way& a, const Way& b) const {
    return std::tuple(-a.degree, a.backend, a.ulysses_degree) <
           std::tuple(-b.degree, b.backend, b.ulysses_degree);
  }
};

}  // namespace

// Keys and values travel forward, again in backward, and their gradients the same way back.
ExchangeCount exchanges_of(const Way& way, std::int64_t copies) {
  if (way.degree == 1) {
    return {};
  }
  const bool ring = way.backend == Backend::kRing || way.backend == Backend::kUspRing;
  const bool splits_heads = way.ulysses_degree > 1;
  const std::int64_t transfers =
      ring_size(way) == 1 ? 0 : (ring ? ring_size(way) - 1 : 1) * (copies > 1 ? 2 : 1);
  const std::int64_t heads = splits_heads ? 2 : 0;
  return {.forward = heads + transfers, .backward = heads + 2 * transfers};
}

std::vector<Way> exchanged_ways(const Round& round) {
  std::set<Way, RootToLeaf> ways;
  for (const Placement& placement : round.placements) {
    if (placement.node.degree > 1) {
      ways.insert(way_of(placement));
    }
  }
  return {ways.begin(), ways.end()};
}

}  // namespace nsp
