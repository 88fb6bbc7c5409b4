// What the ranks of a node send each other in one exchange: plain numbers that all of them know
// alike.
#pragma once

#include <cstdint>
#include <vector>

namespace nsp {

// Members are counted within the node. A source stages the rows that leave it in one block a
// receiver, in the order of receivers; rows for itself are not among them.
struct Route {
  std::int32_t first_rank = 0;
  std::int32_t degree = 1;
  std::vector<std::int64_t> counts{};  // [source * degree + receiver]: rows
  std::int64_t most_staged = 0;        // by any rank of the world in this exchange: equal on all

  std::int64_t rows(std::int32_t source, std::int32_t receiver) const;
  std::int64_t staged(std::int32_t source) const;  // all that leave
  // First row of a receiver's block among those that leave.
  std::int64_t offset(std::int32_t source, std::int32_t receiver) const;
};

// Every source sends rows[source] to each receiver; or each receiver rows[receiver].
Route route_by_source(std::int32_t first_rank, const std::vector<std::int64_t>& rows);
Route route_by_receiver(std::int32_t first_rank, const std::vector<std::int64_t>& rows);

}  // namespace nsp
