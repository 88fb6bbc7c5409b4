#include "nsp/plan/way.h"

#include <algorithm>

#include "nsp/plan/tree.h"

namespace nsp {
namespace {

constexpr Backend kDistributed[] = {
    Backend::kUlysses, Backend::kGather, Backend::kRing, Backend::kUspRing, Backend::kUspGather};

std::int32_t inner_size(const WayLimits& limits) {
  std::int32_t size = 1;
  while (limits.heads % (std::int64_t{2} * size) == 0 &&
         inside_host(2 * size, limits.ranks_per_host)) {
    size *= 2;
  }
  return size;
}

bool allowed(const Way& way, const WayLimits& limits) {
  switch (way.backend) {
    case Backend::kUlysses:
      return limits.heads % way.degree == 0;
    case Backend::kUspRing:
    case Backend::kUspGather:  // one host alone has no use for it
      return way.ulysses_degree > 1 && !inside_host(way.degree, limits.ranks_per_host) &&
             way.degree > way.ulysses_degree;
    case Backend::kLocal:
    case Backend::kGather:
    case Backend::kRing:
      break;
  }
  return true;
}

Way way_with(std::int32_t degree, Backend backend, const WayLimits& limits) {
  switch (backend) {
    case Backend::kUlysses:
      return head_split(degree);
    case Backend::kUspRing:
    case Backend::kUspGather:
      return {.degree = degree, .backend = backend, .ulysses_degree = inner_size(limits)};
    case Backend::kLocal:
    case Backend::kGather:
    case Backend::kRing:
      break;
  }
  return {.degree = degree, .backend = backend, .ulysses_degree = 1};
}

}  // namespace

std::vector<Way> allowed_ways(const WayLimits& limits, std::span<const Backend> backends) {
  std::vector<Way> ways = {head_split(1)};
  for (std::int32_t degree = 2; degree <= limits.sp_max; degree *= 2) {
    for (const Backend backend : kDistributed) {
      const Way way = way_with(degree, backend, limits);
      if (std::ranges::find(backends, backend) != backends.end() && allowed(way, limits)) {
        ways.push_back(way);
      }
    }
  }
  return ways;
}

}  // namespace nsp
