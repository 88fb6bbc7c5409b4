// A rank without others: a communicator that writes down what would be exchanged and answers with
// zeros, and a kernel that computes nothing. All ranks of a world, one after another on one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "nsp/attention/attention.h"
#include "nsp/comm/communicator.h"

namespace nsp::test {

struct Issued {
  std::string purpose;  // "forward prologue of level 4"
  std::vector<std::int64_t> send;
  std::vector<std::int64_t> receive;
};

class Recorder final : public Communicator {
 public:
  Recorder(std::int32_t rank, std::int32_t size, std::vector<Issued>& issued)
      : rank_(rank), size_(size), issued_(issued) {}

  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }

  std::unique_ptr<Pending> exchange(at::Tensor rows,
                                    std::vector<std::int64_t> send_counts,
                                    std::vector<std::int64_t> receive_counts,
                                    const Purpose& purpose) override {
    auto shape = rows.sizes().vec();
    shape[0] = 0;
    for (const std::int64_t count : receive_counts) {
      shape[0] += count;
    }
    issued_.push_back({fmt::format("{} of level {}", purpose.phase, purpose.degree),
                       std::move(send_counts),
                       std::move(receive_counts)});
    at::Tensor received = at::zeros(shape, rows.options());
    return std::make_unique<Zeros>(std::move(rows), std::move(received));
  }

 private:
  struct Zeros final : Pending {
    Zeros(at::Tensor out, at::Tensor in) : sent(std::move(out)), received(std::move(in)) {}
    at::Tensor wait() override {
      sent.reset();
      return std::move(received);
    }
    at::Tensor sent;
    at::Tensor received;
  };

  std::int32_t rank_;
  std::int32_t size_;
  std::vector<Issued>& issued_;
};

// Peer copies of a rank without neighbours: nothing is copied.
class IdlePeers final : public PeerCopies {
 public:
  IdlePeers(std::int32_t rank, std::int32_t reach, std::int64_t fetch_nanoseconds)
      : rank_(rank), reach_(reach), fetch_nanoseconds_(fetch_nanoseconds) {}

  std::int32_t reach() const override { return reach_; }
  std::int64_t fetch_nanoseconds() const override { return fetch_nanoseconds_; }
  std::int64_t capacity() const override { return std::ssize(arena_); }
  void reserve(std::int64_t bytes) override {
    arena_.resize(static_cast<std::size_t>(std::max(bytes, capacity())));
  }
  at::Tensor stage(const Route& route,
                   std::int64_t heads,
                   std::int64_t head_dim,
                   const at::TensorOptions& options) override {
    const std::int64_t rows = route.staged(rank_ - route.first_rank);
    const auto row_bytes = heads * head_dim * static_cast<std::int64_t>(options.dtype().itemsize());
    staged_most = std::max(staged_most, route.most_staged * row_bytes);
    if (rows > route.most_staged || rows * row_bytes > capacity()) {
      throw std::runtime_error("staged rows do not fit");
    }
    return at::from_blob(arena_.data(), {rows, heads, head_dim}, options);
  }
  std::unique_ptr<Pending> pull(const Route&,
                                const at::Tensor&,
                                std::vector<Fetch>,
                                at::Tensor result,
                                const Purpose&) override {
    return std::make_unique<There>(std::move(result));
  }
  void release() override {}

  std::int64_t staged_most = 0;  // bytes of the largest exchange

 private:
  struct There final : Pending {
    explicit There(at::Tensor rows) : result(std::move(rows)) {}
    at::Tensor wait() override { return std::move(result); }
    at::Tensor result;
  };

  std::int32_t rank_;
  std::int32_t reach_;
  std::int64_t fetch_nanoseconds_;
  std::vector<char> arena_;
};

// Attention that computes nothing; its log-sum-exps take no memory.
class NoAttention final : public AttentionKernel {
 public:
  std::string name() const override { return "none"; }
  at::Tensor forward(const AttentionInputs& inputs, const at::Tensor&) override {
    static const at::Tensor zero = at::zeros({}, at::kFloat);
    return zero.expand({inputs.q.size(0), inputs.q.size(1)});
  }
  void backward(const AttentionInputs&,
                const at::Tensor&,
                const at::Tensor&,
                const at::Tensor&,
                const AttentionGradients&) override {}
  std::int64_t workspace_bytes(const LaunchShape&, bool) const override { return 0; }
};

// Empty when every rank issues the same exchanges in the same order and, in each, what every rank
// sends to every other is what that one expects; otherwise the first difference.
inline std::string find_mismatch(const std::vector<std::vector<Issued>>& ranks) {
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    for (std::size_t a = 0; a < ranks.size(); ++a) {
      if (ranks[a].size() != ranks[0].size() || ranks[a][i].purpose != ranks[0][i].purpose) {
        return fmt::format("rank {} issues another exchange than rank 0 at place {}", a, i);
      }
    }
    for (std::size_t a = 0; a < ranks.size(); ++a) {
      for (std::size_t b = 0; b < ranks.size(); ++b) {
        if (ranks[a][i].send[b] != ranks[b][i].receive[a]) {
          return fmt::format("{}: rank {} sends {} rows, rank {} expects {}",
                             ranks[a][i].purpose,
                             a,
                             ranks[a][i].send[b],
                             b,
                             ranks[b][i].receive[a]);
        }
      }
    }
  }
  return "";
}

}  // namespace nsp::test
