#include "nsp/exec/ring_exchange.h"

#include <numeric>
#include <utility>

#include "nsp/exec/sums.h"

namespace nsp {

RingExchange::RingExchange(const Ring& ring,
                           Communicator& communicator,
                           Counts sent,
                           Counts received)
    : ring_(ring),
      communicator_(communicator),
      sent_(std::move(sent)),
      received_(std::move(received)),
      received_rows_(std::accumulate(received_.begin(), received_.end(), std::int64_t{0})) {
  for (const std::int64_t rows : sent_) {
    returned_rows_ += ring_.share(rows, ring_.copy);
  }
}

RingExchange::Counts RingExchange::share_of(const std::vector<Counts>& rows) const {
  Counts result;
  for (const Counts& to : rows) {
    const auto total = static_cast<std::int64_t>(to.size());
    const auto begin = to.begin() + ring_.share_begin(total, ring_.copy);
    result.insert(result.end(), begin, begin + ring_.share(total, ring_.copy));
  }
  return result;
}

// Collected rows lie by copy, then by index.
RingExchange::Counts RingExchange::order() const {
  std::vector<Counts> next;  // [index][copy]: place of its next row
  std::int64_t place = 0;
  next.resize(received_.size(), Counts(static_cast<std::size_t>(ring_.copies)));
  for (std::int32_t copy = 0; copy < ring_.copies; ++copy) {
    for (std::size_t index = 0; index < received_.size(); ++index) {
      next[index][static_cast<std::size_t>(copy)] = place;
      place += ring_.share(received_[index], copy);
    }
  }
  Counts result;
  for (std::size_t index = 0; index < received_.size(); ++index) {
    for (std::int32_t copy = 0; copy < ring_.copies; ++copy) {
      for (std::int64_t i = 0; i < ring_.share(received_[index], copy); ++i) {
        result.push_back(next[index][static_cast<std::size_t>(copy)] + i);
      }
    }
  }
  return result;
}

std::unique_ptr<Pending> RingExchange::start(at::Tensor rows, std::string_view phase) const {
  return communicator_.exchange(
      std::move(rows), across(sent_), across(received_), {phase, ring_.level});
}

at::Tensor RingExchange::collect(std::unique_ptr<Pending> pending, std::string_view phase) const {
  const at::Tensor own = pending->wait();
  pending.reset();
  if (ring_.copies == 1) {
    return own;
  }
  return communicator_
      .exchange(own.repeat({ring_.copies, 1, 1}),
                same_for_copies(own.size(0)),
                among_copies(),
                {phase, ring_.level})
      ->wait();
}

std::unique_ptr<Pending> RingExchange::start_back(at::Tensor rows, std::string_view phase) const {
  if (ring_.copies > 1) {
    const std::int64_t share = received_share(ring_.copy);
    const at::Tensor parts =
        communicator_
            .exchange(std::move(rows), among_copies(), same_for_copies(share), {phase, ring_.level})
            ->wait();
    const at::IntArrayRef sizes = parts.sizes();
    rows = parts.view({ring_.copies, share, sizes[1], sizes[2]})
               .sum(0, false, sum_type(parts.scalar_type()))
               .to(parts.scalar_type());
  }
  return communicator_.exchange(
      std::move(rows), across(received_), across(sent_), {phase, ring_.level});
}

RingExchange::Counts RingExchange::across(const Counts& rows) const {
  Counts counts(static_cast<std::size_t>(communicator_.size()), 0);
  for (std::int32_t index = 0; index < ring_.size; ++index) {
    counts[static_cast<std::size_t>(ring_.rank_of(index))] =
        ring_.share(rows[static_cast<std::size_t>(index)], ring_.copy);
  }
  return counts;
}

RingExchange::Counts RingExchange::among_copies() const {
  Counts counts(static_cast<std::size_t>(communicator_.size()), 0);
  for (std::int32_t copy = 0; copy < ring_.copies; ++copy) {
    counts[static_cast<std::size_t>(ring_.first_copy + copy)] = received_share(copy);
  }
  return counts;
}

std::int64_t RingExchange::received_share(std::int32_t copy) const {
  std::int64_t rows = 0;
  for (const std::int64_t from : received_) {
    rows += ring_.share(from, copy);
  }
  return rows;
}

RingExchange::Counts RingExchange::same_for_copies(std::int64_t rows) const {
  Counts counts(static_cast<std::size_t>(communicator_.size()), 0);
  for (std::int32_t copy = 0; copy < ring_.copies; ++copy) {
    counts[static_cast<std::size_t>(ring_.first_copy + copy)] = rows;
  }
  return counts;
}

}  // namespace nsp
