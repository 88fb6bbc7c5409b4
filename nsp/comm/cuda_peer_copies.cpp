// Four streams of our own, so that no wait for a neighbour holds up work that has nothing to do
// with it. The compute stream never waits for a counter, only for events of these streams.
//
//   reuse     wait taken            -> event -> compute stream packs
//   signal    after the pack: write ready
//   pull      wait ready, copy, write taken  -> event -> compute stream uses the rows
//   release   poison, when the rank is to end
//
// Order of issue is the same on all ranks, and every write is issued before any wait that could
// depend on it: also where the device runs all streams as one queue (CUDA_DEVICE_MAX_CONNECTIONS=1)
// nothing waits for ever.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>

#include "nsp/base/error.h"
#include "nsp/comm/cuda_driver.h"
#include "nsp/comm/device_events.h"
#include "nsp/comm/exchange.h"
#include "nsp/comm/neighbours.h"
#include "nsp/comm/peer_arena.h"
#include "nsp/comm/peer_copies.h"
#include "nsp/comm/pull_schedule.h"

namespace nsp {
namespace {

using Kind = WordOperation::Kind;

// Behind every counter that a run reaches.
constexpr std::uint32_t kPoison = 0x7fffffff;

// `done`: none when nothing comes from elsewhere.
class PulledRows final : public Pending {
 public:
  PulledRows(std::shared_ptr<c10::Event> done,
             std::vector<Fetch> fetches,
             at::Tensor result,
             at::Device device,
             Exchange exchange)
      : done_(std::move(done)),
        fetches_(std::move(fetches)),
        result_(std::move(result)),
        device_(device),
        exchange_(exchange) {}
  // The memory is given back to the current stream: it waits even for rows that nobody wants.
  ~PulledRows() override {
    try {
      block();
    } catch (const std::exception&) {
      done_.reset();  // a device in error
    }
  }
  PulledRows(const PulledRows&) = delete;
  PulledRows& operator=(const PulledRows&) = delete;
  PulledRows(PulledRows&&) = delete;
  PulledRows& operator=(PulledRows&&) = delete;

  at::Tensor wait() override {
    try {
      block();
    } catch (const std::exception& cause) {
      exchange_.fail(cause);
    }
    exchange_.expect_running();
    fetches_.clear();
    return std::move(result_);
  }

 private:
  void block() {
    if (done_) {
      done_->block(current_stream(device_));
      done_.reset();
    }
  }

  std::shared_ptr<c10::Event> done_;
  std::vector<Fetch> fetches_;
  at::Tensor result_;
  at::Device device_;
  Exchange exchange_;
};

struct Streams {
  c10::Stream reuse;
  c10::Stream signal;
  c10::Stream pull;
  c10::Stream release;
};

// The driver's calls need a context on this thread, which a first call of the runtime gives it.
Streams make_streams(at::Device device) {
  const c10::DeviceGuard guard(device);
  current_stream(device).query();
  return {make_own_stream(device),
          make_own_stream(device),
          make_own_stream(device),
          make_own_stream(device)};
}

class CudaPeerCopies final : public PeerCopies {
 public:
  CudaPeerCopies(Communicator& communicator,
                 const std::string& group_name,
                 at::Device device,
                 std::int32_t reach)
      : communicator_(communicator),
        neighbours_(communicator.rank(), group_name, reach),
        device_(device),
        schedule_(neighbours_.first_rank(), reach, communicator.rank(), 0),
        streams_(make_streams(device)) {}

  // Giving memory back waits for the device, which waits for a rank that is gone only where the
  // watchdog has seen that. Otherwise pulls that are still to come must not be let through.
  ~CudaPeerCopies() override {
    if (communicator_.stopped) {
      release();
    }
  }
  CudaPeerCopies(const CudaPeerCopies&) = delete;
  CudaPeerCopies& operator=(const CudaPeerCopies&) = delete;
  CudaPeerCopies(CudaPeerCopies&&) = delete;
  CudaPeerCopies& operator=(CudaPeerCopies&&) = delete;

  std::int32_t reach() const override { return neighbours_.reach(); }
  std::int64_t fetch_nanoseconds() const override { return 3400; }  // H200
  std::int64_t capacity() const override { return arena_ ? arena_->capacity() : 0; }

  // Old and new memory are not held at once. After the meeting no rank has anything to pull: every
  // rank has waited for its own pulls, and all have issued the same exchanges.
  void reserve(std::int64_t bytes) override {
    if (bytes <= capacity()) {
      schedule_.restart();
      return;
    }
    const Progress::Waiting waiting(communicator_.progress);
    const c10::DeviceGuard guard(device_);
    const std::int64_t rounded = (bytes + bytes / 8 + kPage - 1) / kPage * kPage;
    for (const auto& stream : {streams_.reuse, streams_.signal, streams_.pull}) {
      stream.synchronize();
    }
    neighbours_.meet();
    replace(nullptr);
    replace(std::make_shared<PeerArena>(neighbours_.name(), neighbours_.reach(), device_, rounded));
    schedule_ =
        PullSchedule(neighbours_.first_rank(), neighbours_.reach(), communicator_.rank(), rounded);
  }

  at::Tensor stage(const Route& route,
                   std::int64_t heads,
                   std::int64_t head_dim,
                   const at::TensorOptions& options) override {
    const auto row_bytes = heads * head_dim * static_cast<std::int64_t>(options.dtype().itemsize());
    const Staging staging = schedule_.stage(route, row_bytes);
    const std::int64_t rows = route.staged(communicator_.rank() - route.first_rank);
    if (rows == 0) {
      return at::empty({0, heads, head_dim}, options);
    }
    if (!staging.taken.empty()) {
      operations_.clear();
      for (const Signal& taken : staging.taken) {
        operations_.push_back({Kind::kWait,
                               arena_->taken(neighbours_.member(), neighbours_.member(taken.rank)),
                               taken.value});
      }
      run_on(streams_.reuse, operations_);
      events_.record(streams_.reuse)->block(current_stream(device_));
    }
    return at::for_blob(arena_->rows(neighbours_.member()) + staging.offset,
                        {rows, heads, head_dim})
        .options(options)
        .target_device(device_)
        .make_tensor();
  }

  std::unique_ptr<Pending> pull(const Route& route,
                                const at::Tensor& staged,
                                std::vector<Fetch> fetches,
                                at::Tensor result,
                                const Purpose& purpose) override {
    const Exchange exchange{communicator_, purpose};
    exchange.expect_running();
    ++communicator_.exchanges;
    communicator_.bytes += static_cast<std::int64_t>(staged.nbytes());
    std::shared_ptr<c10::Event> done;
    try {
      const auto row_bytes =
          staged.size(1) * staged.size(2) * static_cast<std::int64_t>(staged.element_size());
      const Pulling pulling = schedule_.pull(route, row_bytes);
      const auto staged_now = events_.record(current_stream(device_));
      tell(pulling, *staged_now);
      done = fetch(pulling, fetches, row_bytes, *staged_now);
    } catch (const std::exception& cause) {
      exchange.fail(cause);
    }
    return std::make_unique<PulledRows>(
        std::move(done), std::move(fetches), std::move(result), device_, exchange);
  }

  void release() noexcept final {
    try {
      std::shared_ptr<PeerArena> arena;
      {
        const std::scoped_lock lock(mutex_);
        arena = arena_;
      }
      if (!arena) {
        return;
      }
      const c10::DeviceGuard guard(device_);
      current_stream(device_).query();  // a context on this thread
      std::vector<WordOperation> operations;
      for (std::int32_t other = 0; other < neighbours_.reach(); ++other) {
        for (void* word : {arena->ready(neighbours_.member(), other),
                           arena->taken(neighbours_.member(), other)}) {
          operations.push_back({Kind::kWrite, word, kPoison});
        }
      }
      run_on(streams_.release, operations);
    } catch (const std::exception&) {  // the process ends in a moment anyway
    }
  }

 private:
  static constexpr std::int64_t kPage = std::int64_t{2} << 20;

  void replace(std::shared_ptr<PeerArena> arena) {
    const std::scoped_lock lock(mutex_);
    arena_ = std::move(arena);
  }

  // The receivers may pull.
  void tell(const Pulling& pulling, const c10::Event& staged) {
    if (pulling.ready.empty()) {
      return;
    }
    operations_.clear();
    for (const Signal& ready : pulling.ready) {
      operations_.push_back({Kind::kWrite,
                             arena_->ready(neighbours_.member(ready.rank), neighbours_.member()),
                             ready.value});
    }
    staged.block(streams_.signal);
    run_on(streams_.signal, operations_);
  }

  // The pull stream waits for `staged` too: memory that the rows go to may have been in use on the
  // compute stream until now.
  std::shared_ptr<c10::Event> fetch(const Pulling& pulling,
                                    const std::vector<Fetch>& fetches,
                                    std::int64_t row_bytes,
                                    const c10::Event& staged) {
    if (pulling.sources.empty()) {
      return nullptr;
    }
    staged.block(streams_.pull);
    signal_sources(pulling, Kind::kWait);
    copy_on(streams_.pull, copies_of(pulling, fetches, row_bytes));
    signal_sources(pulling, Kind::kWrite);
    auto done = events_.record(streams_.pull);
    communicator_.in_flight.add([done] { return is_done(*done); }, communicator_.progress.place());
    return done;
  }

  // Waits for what sources have written here, or tells them that it was taken.
  void signal_sources(const Pulling& pulling, Kind kind) {
    operations_.clear();
    for (const Pulling::Source& source : pulling.sources) {
      const std::int32_t from = neighbours_.member(source.ready.rank);
      void* word = kind == Kind::kWait ? arena_->ready(neighbours_.member(), from)
                                       : arena_->taken(from, neighbours_.member());
      operations_.push_back({kind, word, source.ready.value});
    }
    run_on(streams_.pull, operations_);
  }

  std::vector<RowCopy> copies_of(const Pulling& pulling,
                                 const std::vector<Fetch>& fetches,
                                 std::int64_t row_bytes) const {
    std::vector<RowCopy> copies;
    copies.reserve(fetches.size());
    for (const Fetch& fetch : fetches) {
      const auto source =
          std::ranges::find(pulling.sources, fetch.source, &Pulling::Source::member);
      if (source == pulling.sources.end() || fetch.to.numel() == 0) {
        continue;
      }
      const auto value = static_cast<std::int64_t>(fetch.to.element_size());
      const char* block = arena_->rows(neighbours_.member(source->ready.rank)) + source->offset;
      copies.push_back(
          {.from = block + fetch.row * row_bytes + fetch.head * fetch.to.size(2) * value,
           .from_pitch = static_cast<std::size_t>(row_bytes),
           .to = fetch.to.data_ptr(),
           .to_pitch = static_cast<std::size_t>(fetch.to.stride(0) * value),
           .width = static_cast<std::size_t>(fetch.to.size(1) * fetch.to.size(2) * value),
           .rows = static_cast<std::size_t>(fetch.to.size(0))});
    }
    return copies;
  }

  Communicator& communicator_;
  Neighbours neighbours_;
  at::Device device_;
  PullSchedule schedule_;
  DeviceEvents events_;
  Streams streams_;
  std::vector<WordOperation> operations_;
  std::mutex mutex_;  // of arena_, which another thread may release
  std::shared_ptr<PeerArena> arena_;
};

}  // namespace

bool has_peer_copies() {
  return true;
}

std::unique_ptr<PeerCopies> make_peer_copies(Communicator& communicator,
                                             const std::string& group_name,
                                             at::Device device,
                                             std::int32_t reach) {
  return std::make_unique<CudaPeerCopies>(communicator, group_name, device, reach);
}

}  // namespace nsp
