#include "host_peers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "nsp/base/random.h"
#include "nsp/comm/pull_schedule.h"

namespace nsp::test {

constexpr std::chrono::seconds kPatience{20};

// Every rank's memory, and its counters under one lock.
class HostArenas {
 public:
  explicit HostArenas(std::int32_t world) : rows_(static_cast<std::size_t>(world)) {}

  std::vector<char>& rows(std::int32_t rank) { return rows_[static_cast<std::size_t>(rank)]; }

  // `word`: {owner, writer, 0 ready or 1 taken}.
  using Word = std::tuple<std::int32_t, std::int32_t, int>;
  void write(const Word& word, std::uint32_t value) {
    const std::scoped_lock lock(mutex_);
    words_[word] = value;
    changed_.notify_all();
  }
  void wait(const Word& word, std::uint32_t value) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return words_[word] >= value; };
    if (!changed_.wait_for(lock, kPatience, there)) {
      throw std::runtime_error("a counter was never written: the ranks wait for each other");
    }
  }

  // All ranks of a group come here before any goes on.
  void meet(std::int32_t first_rank, std::int32_t size) {
    std::unique_lock lock(mutex_);
    Meeting& meeting = meetings_[first_rank];
    const std::int64_t turn = meeting.turn;
    if (++meeting.here == size) {
      meeting = {.turn = turn + 1};
      changed_.notify_all();
    }
    if (!changed_.wait_for(lock, kPatience, [&] { return meeting.turn > turn; })) {
      throw std::runtime_error("a rank never came to reserve memory");
    }
  }
  void forget(std::int32_t rank) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(words_, [&](const auto& word) { return std::get<0>(word.first) == rank; });
  }

 private:
  struct Meeting {
    std::int64_t turn = 0;
    std::int32_t here = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<char>> rows_;
  std::map<Word, std::uint32_t> words_;
  std::map<std::int32_t, Meeting> meetings_;
};

namespace {

constexpr int kReady = 0;
constexpr int kTaken = 1;

// Runs what it is given in order, after random pauses.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed), thread_([this] { run(); }) {}
  ~Stream() {
    {
      const std::scoped_lock lock(mutex_);
      work_.emplace();  // the end
    }
    changed_.notify_one();
    thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream(Stream&&) = delete;
  Stream& operator=(Stream&&) = delete;

  std::future<void> add(std::function<void()> work) {
    std::packaged_task<void()> task(std::move(work));
    std::future<void> done = task.get_future();
    {
      const std::scoped_lock lock(mutex_);
      work_.push(std::move(task));
    }
    changed_.notify_one();
    return done;
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !work_.empty(); });
      std::packaged_task<void()> task = std::move(work_.front());
      work_.pop();
      lock.unlock();
      if (!task.valid()) {
        return;
      }
      for (std::uint64_t pauses = random_.below(4); pauses > 0; --pauses) {
        std::this_thread::yield();
      }
      task();
    }
  }

  Random random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::packaged_task<void()>> work_;
  std::thread thread_;
};

void copy_rows(const char* from, std::int64_t row_bytes, const at::Tensor& to) {
  const auto value = static_cast<std::int64_t>(to.element_size());
  const auto width = static_cast<std::size_t>(to.size(1) * to.size(2) * value);
  auto* target = static_cast<char*>(to.data_ptr());
  for (std::int64_t row = 0; row < to.size(0); ++row) {
    std::memcpy(target + row * to.stride(0) * value, from + row * row_bytes, width);
  }
}

struct HostPulled final : Pending {
  HostPulled(std::future<void> pulled, at::Tensor rows)
      : done(std::move(pulled)), result(std::move(rows)) {}
  at::Tensor wait() override {
    done.get();
    return std::move(result);
  }
  std::future<void> done;
  at::Tensor result;
};

class HostPeers final : public PeerCopies {
 public:
  HostPeers(std::shared_ptr<HostArenas> arenas,
            Communicator& communicator,
            const HostPeersOptions& options)
      : arenas_(std::move(arenas)),
        communicator_(communicator),
        options_(options),
        rank_(communicator.rank()),
        first_rank_(rank_ / options.reach * options.reach),
        schedule_(first_rank_, options.reach, rank_, 0),
        signal_(options.seed + 2 * static_cast<std::uint64_t>(rank_)),
        pull_(options.seed + 2 * static_cast<std::uint64_t>(rank_) + 1) {}

  std::int32_t reach() const override { return options_.reach; }
  std::int64_t fetch_nanoseconds() const override { return options_.fetch_nanoseconds; }
  std::int64_t capacity() const override { return std::ssize(arenas_->rows(rank_)); }

  void reserve(std::int64_t bytes) override {
    const std::int64_t wanted = options_.capacity >= 0 ? options_.capacity : bytes;
    if (wanted <= capacity()) {
      schedule_.restart();
      return;
    }
    signal_.add([] {}).get();
    pull_.add([] {}).get();
    arenas_->meet(first_rank_, options_.reach);
    arenas_->rows(rank_).assign(static_cast<std::size_t>(wanted), 0);
    arenas_->forget(rank_);
    schedule_ = PullSchedule(first_rank_, options_.reach, rank_, wanted);
    arenas_->meet(first_rank_, options_.reach);
  }

  at::Tensor stage(const Route& route,
                   std::int64_t heads,
                   std::int64_t head_dim,
                   const at::TensorOptions& options) override {
    const auto row_bytes = heads * head_dim * static_cast<std::int64_t>(options.dtype().itemsize());
    const Staging staging = schedule_.stage(route, row_bytes);
    for (const Signal& taken : staging.taken) {
      if (options_.wait_for_taken) {
        arenas_->wait({rank_, taken.rank, kTaken}, taken.value);
      }
    }
    const std::int64_t rows = route.staged(rank_ - route.first_rank);
    return rows == 0 ? at::empty({0, heads, head_dim}, options)
                     : at::from_blob(arenas_->rows(rank_).data() + staging.offset,
                                     {rows, heads, head_dim},
                                     options);
  }

  std::unique_ptr<Pending> pull(const Route& route,
                                const at::Tensor& staged,
                                std::vector<Fetch> fetches,
                                at::Tensor result,
                                const Purpose&) override {
    ++communicator_.exchanges;
    communicator_.bytes += static_cast<std::int64_t>(staged.nbytes());
    const auto row_bytes =
        staged.size(1) * staged.size(2) * static_cast<std::int64_t>(staged.element_size());
    const Pulling pulling = schedule_.pull(route, row_bytes);
    signal_.add([this, ready = pulling.ready] {
      for (const Signal& signal : ready) {
        arenas_->write({signal.rank, rank_, kReady}, signal.value);
      }
    });
    auto done = pull_.add([this, pulling, row_bytes, fetches = std::move(fetches)] {
      for (const Pulling::Source& source : pulling.sources) {
        arenas_->wait({rank_, source.ready.rank, kReady}, source.ready.value);
      }
      for (const Fetch& fetch : fetches) {
        const auto source =
            std::ranges::find(pulling.sources, fetch.source, &Pulling::Source::member);
        if (source != pulling.sources.end()) {
          copy_rows(arenas_->rows(source->ready.rank).data() + source->offset +
                        fetch.row * row_bytes +
                        fetch.head * fetch.to.size(2) *
                            static_cast<std::int64_t>(fetch.to.element_size()),
                    row_bytes,
                    fetch.to);
        }
      }
      for (const Pulling::Source& source : pulling.sources) {
        arenas_->write({source.ready.rank, rank_, kTaken}, source.ready.value);
      }
    });
    return std::make_unique<HostPulled>(std::move(done), std::move(result));
  }

  void release() override {}

 private:
  std::shared_ptr<HostArenas> arenas_;
  Communicator& communicator_;
  HostPeersOptions options_;
  std::int32_t rank_;
  std::int32_t first_rank_;
  PullSchedule schedule_;
  Stream signal_;
  Stream pull_;
};

}  // namespace

std::shared_ptr<HostArenas> make_host_arenas(std::int32_t world) {
  return std::make_shared<HostArenas>(world);
}

std::unique_ptr<PeerCopies> make_host_peers(std::shared_ptr<HostArenas> arenas,
                                            Communicator& communicator,
                                            const HostPeersOptions& options) {
  return std::make_unique<HostPeers>(std::move(arenas), communicator, options);
}

}  // namespace nsp::test
