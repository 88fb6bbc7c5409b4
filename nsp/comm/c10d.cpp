#include "nsp/comm/c10d.h"

#include <fmt/format.h>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "nsp/base/error.h"

namespace nsp {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// Where an exchange failed, for a person who reads one rank's log.
struct Place {
  std::int32_t rank;
  std::int32_t size;
  Purpose purpose;

  [[noreturn]] void fail(const std::exception& cause) const {
    throw Error(fmt::format("rank {} of {}: the exchange of the {} of level {} failed: {}",
                            rank,
                            size,
                            purpose.phase,
                            purpose.degree,
                            cause.what()));
  }
};

class C10dPending final : public Pending {
 public:
  C10dPending(c10::intrusive_ptr<c10d::Work> work,
              at::Tensor sent,
              at::Tensor received,
              Place place)
      : work_(std::move(work)),
        sent_(std::move(sent)),
        received_(std::move(received)),
        place_(place) {}

  at::Tensor wait() override {
    try {
      work_->wait();
    } catch (const std::exception& cause) {
      place_.fail(cause);
    }
    sent_.reset();
    return std::move(received_);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  at::Tensor sent_;
  at::Tensor received_;
  Place place_;
};

class C10dCommunicator final : public Communicator {
 public:
  explicit C10dCommunicator(Group group) : group_(std::move(group)) {}

  std::int32_t rank() const override { return group_->getRank(); }
  std::int32_t size() const override { return group_->getSize(); }

  std::unique_ptr<Pending> exchange(at::Tensor rows,
                                    std::vector<std::int64_t> send_counts,
                                    std::vector<std::int64_t> receive_counts,
                                    const Purpose& purpose) override {
    const Place place{rank(), size(), purpose};
    auto shape = rows.sizes().vec();
    shape[0] = std::accumulate(receive_counts.begin(), receive_counts.end(), std::int64_t{0});
    at::Tensor received = at::empty(shape, rows.options());
    count(rows, send_counts);
    try {
      c10d::AllToAllOptions options;
      options.asyncOp = true;
      auto work = group_->alltoall_base(received, rows, receive_counts, send_counts, options);
      return std::make_unique<C10dPending>(
          std::move(work), std::move(rows), std::move(received), place);
    } catch (const std::exception& cause) {
      place.fail(cause);
    }
  }

 private:
  void count(const at::Tensor& rows, const std::vector<std::int64_t>& send_counts) {
    const std::int64_t all = rows.size(0);
    const std::int64_t own = send_counts[static_cast<std::size_t>(rank())];
    const auto row_bytes =
        all == 0 ? 0 : rows.numel() / all * static_cast<std::int64_t>(rows.element_size());
    ++exchanges;
    bytes += (all - own) * row_bytes;
  }

  Group group_;
};

}  // namespace

std::unique_ptr<Communicator> make_c10d_communicator(const std::string& group_name) {
  Group group;
  try {
    group = c10d::resolve_process_group(group_name);
  } catch (const std::exception&) {
    bad_input("group_name", group_name, "no process group of this process has this name");
  }
  return std::make_unique<C10dCommunicator>(std::move(group));
}

}  // namespace nsp
