//   rows (t, H, D) -- pack what leaves --> arena (., heads, D)
//                     what stays -------------------------------------v
//        neighbours' arenas -- pull every run to its place --> (T, heads, D) by sequence
//
//   (T, heads, D) by sequence -- put what leaves in order --> arena (., heads, D)
//                     what stays -------------------------------------v
//        neighbours' arenas -- pull into the layer's layout --> (t, H, D)
//
// Copy engines do what the permuting and the unpacking kernels of a collective do, beside
// attention. Copies on the rank itself would not be hidden there (inside one GPU they are kernels):
// they run on the compute stream, and each row is copied once.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include "nsp/exec/copy_heads.h"
#include "nsp/exec/head_exchange.h"
#include "nsp/exec/rank_heads.h"
#include "nsp/exec/row_index.h"
#include "nsp/exec/row_permutation.h"
#include "nsp/exec/runs.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;

constexpr std::int64_t kKernelBytesPerNanosecond = 3000;  // read and written (H200)
constexpr std::int64_t kMostFetches = 256;
constexpr std::int64_t kMostStagedRuns = 32;  // beyond, one gather

// Heads of received rows and where they go: (t, heads, D).
struct Landing {
  std::int64_t head = 0;
  Tensor to;
};

// A rank's own part of a list that is ordered by source: [begin, begin + count) are its own.
struct Own {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

std::vector<std::int64_t> without(std::vector<std::int64_t> order, const Own& own) {
  order.erase(order.begin() + own.begin, order.begin() + own.begin + own.count);
  return order;
}

std::vector<std::int64_t> only(const std::vector<std::int64_t>& order, const Own& own) {
  return {order.begin() + own.begin, order.begin() + own.begin + own.count};
}

// A fetch a run, against one a source and a kernel that reads and writes all rows.
bool is_cheaper_by_runs(std::int64_t runs,
                        std::int64_t sources,
                        std::int64_t fetch_nanoseconds,
                        std::int64_t bytes) {
  return runs <= kMostFetches &&
         (runs - sources) * fetch_nanoseconds <= 2 * bytes / kKernelBytesPerNanosecond;
}

class PeerExchange final : public HeadExchange {
 public:
  PeerExchange(const Block& block, const HeadSplit& heads, PeerCopies& peers)
      : degree_(block.degree),
        me_(block.rank - block.first_rank),
        tokens_(block.tokens),
        rank_tokens_(block.rank_tokens),
        own_{std::accumulate(rank_tokens_.begin(), rank_tokens_.begin() + me_, std::int64_t{0}),
             tokens_},
        node_tokens_(std::accumulate(rank_tokens_.begin(), rank_tokens_.end(), std::int64_t{0})),
        ranks_(tokens_, degree_, heads),
        peers_(peers),
        fetch_nanoseconds_(block.fetch_nanoseconds),
        there_(route_by_source(block.first_rank, rank_tokens_)),
        back_(route_by_receiver(block.first_rank, rank_tokens_)),
        to_sequences_(block.to_sequences),
        leaving_(without(inverse_permutation(block.to_sequences), own_)),
        staying_(only(inverse_permutation(block.to_sequences), own_)) {
    there_.most_staged = (degree_ - 1) * block.level.most;
    back_.most_staged = block.level.most_elsewhere;
    for (const Run& run : runs_of(block)) {
      (run.source == me_ ? own_runs_ : runs_).push_back(run);
    }
    sources_ = std::ranges::count_if(rank_tokens_, [](auto rows) { return rows > 0; }) -
               (tokens_ > 0 ? 1 : 0);
  }

  std::unique_ptr<Pending> to_sequences(std::span<const Tensor> parts,
                                        std::string_view phase) const override {
    const Tensor& like = parts.front();
    const std::int64_t heads = heads_of(parts), d = like.size(-1);
    const Tensor staged = peers_.stage(there_, heads, d, like.options());
    HeadCopies copies;
    stage_parts(parts, staged, copies);
    const Tensor rows = at::empty({node_tokens_, heads, d}, like.options());
    const auto row_bytes = heads * d * static_cast<std::int64_t>(rows.element_size());
    const bool by_runs = is_cheaper_by_runs(
        std::ssize(runs_), sources_, fetch_nanoseconds_, node_tokens_ * row_bytes);
    keep_parts(parts, rows, by_runs, copies);
    auto pending = peers_.pull(
        there_, staged, by_runs ? fetch_runs(rows) : fetch_blocks(rows), rows, {phase, degree_});
    return by_runs ? std::move(pending) : to_sequences_.apply(std::move(pending));
  }

  std::unique_ptr<Pending> to_rows(const Tensor& x,
                                   std::span<const Tensor> targets,
                                   std::string_view phase) const override {
    const Tensor staged = peers_.stage(back_, x.size(1), x.size(2), x.options());
    HeadCopies copies;
    stage_rows(x, staged, copies);
    const std::int64_t rest = x.size(1) - heads_of(targets);
    const Tensor packed =
        rest > 0 ? at::empty({degree_ * tokens_, rest, x.size(2)}, x.options()) : Tensor();
    keep_rows(x, landings(targets, packed, me_), copies);
    std::vector<Fetch> fetches;
    for (std::int32_t source = 0; source < degree_ && tokens_ > 0; ++source) {
      if (source != me_) {
        for (Landing& landing : landings(targets, packed, source)) {
          fetches.push_back({.source = source, .head = landing.head, .to = std::move(landing.to)});
        }
      }
    }
    return peers_.pull(back_, staged, std::move(fetches), packed, {phase, degree_});
  }

 private:
  // The rows of every other member in turn, each with the heads that it works on.
  void stage_parts(std::span<const Tensor> parts, const Tensor& staged, HeadCopies& copies) const {
    if (tokens_ == 0) {
      return;
    }
    std::int64_t row = 0;
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, me_},
                                     std::pair<std::int64_t, std::int64_t>{me_ + 1, degree_}}) {
      for (const RankHeads::Range& range : ranks_.ranges(begin, end)) {
        std::vector<Tensor> some;
        for (const Tensor& part : parts) {
          some.push_back(ranks_.members(part, range));
        }
        const std::int64_t rows = (range.end - range.begin) * tokens_;
        copies.pack(some, ranks_.packed(part(staged, 0, row, rows), range));
        row += rows;
      }
    }
  }

  // This rank's own rows to their place among the node's. Makes all copies.
  void keep_parts(std::span<const Tensor> parts,
                  const Tensor& rows,
                  bool by_runs,
                  HeadCopies& copies) const {
    if (tokens_ == 0) {
      return;
    }
    std::vector<Tensor> own;
    for (const Tensor& part : parts) {
      own.push_back(ranks_.member(part, me_));
    }
    if (!by_runs) {
      copies.pack(own, part(rows, 0, own_.begin, own_.count));
      copies.run();
      return;
    }
    if (std::ssize(own_runs_) > kMostOwnRuns) {
      const Tensor packed = at::empty({tokens_, rows.size(1), rows.size(2)}, rows.options());
      copies.pack(own, packed);
      copies.run();
      staying_.scatter(packed, rows);
      return;
    }
    for (const Run& run : own_runs_) {
      std::vector<Tensor> some;
      for (const Tensor& whole : own) {
        some.push_back(part(whole, 0, run.row, run.rows));
      }
      copies.pack(some, part(rows, 0, run.to, run.rows));
    }
    copies.run();
  }

  std::vector<Fetch> fetch_runs(const Tensor& rows) const {
    std::vector<Fetch> fetches;
    for (const Run& run : runs_) {
      fetches.push_back(
          {.source = run.source, .row = run.row, .to = part(rows, 0, run.to, run.rows)});
    }
    return fetches;
  }

  // Rows by source, as a collective receives them.
  std::vector<Fetch> fetch_blocks(const Tensor& rows) const {
    std::vector<Fetch> fetches;
    std::int64_t begin = 0;
    for (std::int32_t source = 0; source < degree_; ++source) {
      const std::int64_t count = rank_tokens_[static_cast<std::size_t>(source)];
      if (source != me_ && count > 0) {
        fetches.push_back({.source = source, .to = part(rows, 0, begin, count)});
      }
      begin += count;
    }
    return fetches;
  }

  // Rows that other ranks own, by owner.
  void stage_rows(const Tensor& x, const Tensor& staged, HeadCopies& copies) const {
    if (std::ssize(runs_) > kMostStagedRuns) {
      leaving_.gather(x, staged);
      return;
    }
    for (const Run& run : runs_) {
      const std::int64_t row = back_.offset(me_, run.source) + run.row;
      copies.add(part(x, 0, run.to, run.rows), part(staged, 0, row, run.rows));
    }
  }

  // Makes all copies.
  void keep_rows(const Tensor& x, const std::vector<Landing>& landings, HeadCopies& copies) const {
    const auto keep = [&](const Tensor& rows, std::int64_t first) {
      for (const auto& [head, to] : landings) {
        copies.add(part(rows, 1, head, to.size(1)), part(to, 0, first, rows.size(0)));
      }
    };
    if (std::ssize(own_runs_) > kMostOwnRuns) {
      const Tensor rows = at::empty({tokens_, x.size(1), x.size(2)}, x.options());
      staying_.gather(x, rows);
      keep(rows, 0);
      copies.run();
      return;
    }
    for (const Run& run : own_runs_) {
      keep(part(x, 0, run.to, run.rows), run.row);
    }
    copies.run();
  }

  // Where the rows that a member worked on go.
  std::vector<Landing> landings(std::span<const Tensor> targets,
                                const Tensor& packed,
                                std::int32_t member) const {
    std::vector<Landing> result;
    std::int64_t head = 0;
    for (const Tensor& target : targets) {
      result.push_back({head, ranks_.member(target, member)});
      head += target.size(-2);
    }
    if (packed.defined()) {
      result.push_back({head, part(packed, 0, member * tokens_, tokens_)});
    }
    return result;
  }

  std::int32_t degree_;
  std::int32_t me_;
  std::int64_t tokens_;
  std::vector<std::int64_t> rank_tokens_;
  Own own_;
  std::int64_t node_tokens_;
  RankHeads ranks_;
  PeerCopies& peers_;
  std::int64_t fetch_nanoseconds_;
  Route there_;
  Route back_;
  RowPermutation to_sequences_;
  RowIndex leaving_;
  RowIndex staying_;
  std::vector<Run> runs_;      // of other ranks
  std::vector<Run> own_runs_;  // of this rank
  std::int64_t sources_ = 0;   // other ranks that hold rows
};

}  // namespace

std::unique_ptr<HeadExchange> make_peer_exchange(const Block& block,
                                                 const HeadSplit& heads,
                                                 PeerCopies& peers) {
  return std::make_unique<PeerExchange>(block, heads, peers);
}

bool pulls_runs(const Block& block, std::int64_t row_bytes) {
  const std::vector<Run> runs = runs_of(block);
  const auto own = [&](const Run& run) { return block.first_rank + run.source == block.rank; };
  const std::int64_t sources =
      std::ranges::count_if(block.rank_tokens, [](auto rows) { return rows > 0; }) -
      (block.tokens > 0 ? 1 : 0);
  return is_cheaper_by_runs(std::ssize(runs) - std::ranges::count_if(runs, own),
                            sources,
                            block.fetch_nanoseconds,
                            std::ssize(block.to_sequences) * row_bytes);
}

}  // namespace nsp
