// How a node runs a sequence: degree and backend. Placements of one node and one way share their
// launches and exchanges.
#pragma once

#include <compare>
#include <cstdint>

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

}  // namespace nsp
