// How rows of keys and values travel between the ranks of a ring, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/comm/communicator.h"
#include "nsp/exec/ring_ranks.h"

namespace nsp {

// One exchange of rows (N, heads, D) between ring indices, and its way back for what belongs to
// these rows. Every rank of the world starts and collects it in the same order. Immutable, safe to
// share.
class RingExchange {
 public:
  using Counts = std::vector<std::int64_t>;

  // Rows, whole ones, that this rank's index sends to and receives from each index.
  RingExchange(const Ring& ring, Communicator& communicator, Counts sent, Counts received);

  // Row numbers of the share that this rank sends, when rows[i] are those for index i.
  Counts share_of(const std::vector<Counts>& rows) const;
  // Where collect puts them: row i of those from all indices in turn is row order()[i].
  Counts order() const;
  // Rows that collect gives, and that collect_back gives.
  std::int64_t received_rows() const { return received_rows_; }
  std::int64_t returned_rows() const { return returned_rows_; }

  // `rows`: this rank's share, by index.
  std::unique_ptr<Pending> start(at::Tensor rows, std::string_view phase) const;
  at::Tensor collect(std::unique_ptr<Pending> pending, std::string_view phase) const;

  // `rows`: for each that collect gave. Collected: this rank's share of what came back, by index,
  // summed over the copies.
  std::unique_ptr<Pending> start_back(at::Tensor rows, std::string_view phase) const;
  at::Tensor collect_back(std::unique_ptr<Pending> pending) const { return pending->wait(); }

 private:
  // This copy's shares, to or from each index, over the world.
  Counts across(const Counts& rows) const;
  // What each copy has of the received rows, over the world.
  Counts among_copies() const;
  // The share of `copy` in all that is received.
  std::int64_t received_share(std::int32_t copy) const;
  Counts same_for_copies(std::int64_t rows) const;

  Ring ring_;
  Communicator& communicator_;
  Counts sent_;
  Counts received_;
  std::int64_t received_rows_ = 0;
  std::int64_t returned_rows_ = 0;
};

}  // namespace nsp
