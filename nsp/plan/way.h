// How a node runs a sequence: degree and backend. Placements of one node and one way share their
// launches and exchanges.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

struct Way {
  std::int32_t degree = 1;
  Backend backend = Backend::kLocal;
  std::int32_t ulysses_degree = 1;  // usp: inner size; ulysses: the degree; otherwise 1

  auto operator<=>(const Way&) const = default;
};

inline Way way_of(const Placement& placement) {
  return {.degree = placement.node.degree,
          .backend = placement.backend,
          .ulysses_degree = placement.ulysses_degree};
}

// local at degree 1, ulysses above.
inline Way head_split(std::int32_t degree) {
  return {.degree = degree,
          .backend = degree == 1 ? Backend::kLocal : Backend::kUlysses,
          .ulysses_degree = degree};
}

// Ranks that pass keys and values on to each other, or gather them: 1 for local and ulysses, which
// cut a sequence in one piece a rank; the others cut it in zigzag, two pieces each.
constexpr std::int32_t ring_size(const Way& way) {
  return way.degree / way.ulysses_degree;
}

// Whether attention output can be kept from a checkpointed layer's first forward pass; the others
// recompute it, whatever a mark says.
constexpr bool keeps_output(Backend backend) {
  return backend == Backend::kLocal || backend == Backend::kUlysses;
}

// What its mark comes to.
constexpr Mark mark_of(const Placement& placement) {
  return keeps_output(placement.backend) ? placement.mark : Mark::kRecompute;
}

// What a model and its machine allow.
struct WayLimits {
  std::int64_t heads = 1;           // query heads: ulysses degrees divide them
  std::int32_t ranks_per_host = 1;  // usp: ulysses inside a host, the rest between hosts
  std::int32_t sp_max = 1;
};

// Every way up to sp_max that `backends` name, by degree, then backend; local always. The inner
// size of usp is the largest power of two that divides the heads and the ranks of a host.
std::vector<Way> allowed_ways(const WayLimits& limits, std::span<const Backend> backends);

}  // namespace nsp
