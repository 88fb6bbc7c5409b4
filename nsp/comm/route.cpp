#include "nsp/comm/route.h"

#include <algorithm>

namespace nsp {
namespace {

template <class Rows>
Route make_route(std::int32_t first_rank, std::int32_t degree, const Rows& rows) {
  Route route{.first_rank = first_rank, .degree = degree};
  for (std::int32_t source = 0; source < degree; ++source) {
    for (std::int32_t receiver = 0; receiver < degree; ++receiver) {
      route.counts.push_back(rows(source, receiver));
    }
  }
  for (std::int32_t source = 0; source < degree; ++source) {
    route.most_staged = std::max(route.most_staged, route.staged(source));
  }
  return route;
}

std::size_t at(std::int32_t member) {
  return static_cast<std::size_t>(member);
}

}  // namespace

std::int64_t Route::rows(std::int32_t source, std::int32_t receiver) const {
  return counts[at(source * degree + receiver)];
}

std::int64_t Route::staged(std::int32_t source) const {
  return offset(source, degree);
}

std::int64_t Route::offset(std::int32_t source, std::int32_t receiver) const {
  std::int64_t before = 0;
  for (std::int32_t other = 0; other < receiver; ++other) {
    before += other == source ? 0 : rows(source, other);
  }
  return before;
}

Route route_by_source(std::int32_t first_rank, const std::vector<std::int64_t>& rows) {
  const auto of_source = [&](std::int32_t source, std::int32_t) { return rows[at(source)]; };
  return make_route(first_rank, static_cast<std::int32_t>(rows.size()), of_source);
}

Route route_by_receiver(std::int32_t first_rank, const std::vector<std::int64_t>& rows) {
  const auto of_receiver = [&](std::int32_t, std::int32_t receiver) { return rows[at(receiver)]; };
  return make_route(first_rank, static_cast<std::int32_t>(rows.size()), of_receiver);
}

}  // namespace nsp
