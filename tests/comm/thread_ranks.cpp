#include "thread_ranks.h"

#include <condition_variable>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace nsp::test {
namespace {

using Counts = std::vector<std::int64_t>;

// One rank's part of one exchange, as the others see it.
struct Part {
  at::Tensor rows;
  Counts counts;
};

// Where exchanges meet. The n-th exchange of a rank meets the n-th of every other; several may be
// in flight, as with a real asynchronous backend.
class Room {
 public:
  explicit Room(int size) : size_(size), left_(static_cast<std::size_t>(size), false) {}

  void put(std::size_t exchange, int rank, Part part) {
    const std::scoped_lock lock(mutex_);
    if (exchanges_.size() <= exchange) {
      exchanges_.resize(exchange + 1);
    }
    auto& parts = exchanges_[exchange];
    parts.resize(static_cast<std::size_t>(size_));
    parts[static_cast<std::size_t>(rank)] = {true, std::move(part)};
    changed_.notify_all();
  }

  Part get(std::size_t exchange, int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      const auto source = static_cast<std::size_t>(rank);
      return failed_ || left_[source] || exchanges_[exchange][source].first;
    });
    const auto& [there, part] = exchanges_[exchange][static_cast<std::size_t>(rank)];
    if (!there) {
      throw std::runtime_error("another rank failed or left");
    }
    return part;
  }

  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

  void leave(int rank) {
    const std::scoped_lock lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool failed_ = false;
  std::vector<bool> left_;
  std::vector<std::vector<std::pair<bool, Part>>> exchanges_;
};

// Moves the data when it is waited for, so a caller that reads too early reads nothing useful.
class ThreadWork final : public c10d::Work {
 public:
  ThreadWork(
      std::shared_ptr<Room> room, std::size_t exchange, int rank, at::Tensor out, Counts counts)
      : room_(std::move(room)),
        exchange_(exchange),
        rank_index_(static_cast<std::size_t>(rank)),
        out_(std::move(out)),
        counts_(std::move(counts)) {}

  bool wait(std::chrono::milliseconds) override {
    std::int64_t to = 0;
    for (std::size_t source = 0; source < counts_.size(); ++source) {
      const Part part = room_->get(exchange_, static_cast<int>(source));
      const std::int64_t sent = part.counts[rank_index_];
      if (sent != counts_[source]) {
        throw std::runtime_error(fmt::format("rank {} sends {} rows, rank {} expects {}",
                                             source,
                                             sent,
                                             rank_index_,
                                             counts_[source]));
      }
      std::int64_t from = 0;
      for (std::size_t i = 0; i < rank_index_; ++i) {
        from += part.counts[i];
      }
      out_.narrow(0, to, sent).copy_(part.rows.narrow(0, from, sent));
      to += sent;
    }
    return true;
  }

 private:
  std::shared_ptr<Room> room_;
  std::size_t exchange_;
  std::size_t rank_index_;
  at::Tensor out_;
  Counts counts_;
};

class ThreadBackend final : public c10d::Backend {
 public:
  ThreadBackend(std::shared_ptr<Room> room, int rank, int size)
      : Backend(rank, size), room_(std::move(room)) {}

  const std::string getBackendName() const override { return "threads"; }

  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out,
                                               at::Tensor& in,
                                               Counts& out_counts,
                                               Counts& in_counts,
                                               const c10d::AllToAllOptions&) override {
    room_->put(next_, rank_, {in.detach(), in_counts});
    return c10::make_intrusive<ThreadWork>(room_, next_++, rank_, out, out_counts);
  }

 private:
  std::shared_ptr<Room> room_;
  std::size_t next_ = 0;
};

void run_rank(int rank,
              int world,
              const std::shared_ptr<Room>& room,
              const c10::intrusive_ptr<c10d::Store>& store,
              const std::function<void(int, const std::string&)>& body) {
  at::set_num_threads(1);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, world);
  const auto type = c10d::ProcessGroup::BackendType::CUSTOM;
  group->setBackend(c10::kCPU, type, c10::make_intrusive<ThreadBackend>(room, rank, world));
  group->setDefaultBackend(type);
  const std::string name = fmt::format("thread_rank_{}", rank);
  c10d::register_process_group(name, group);
  struct Unregister {
    const std::string& name;
    ~Unregister() { c10d::unregister_process_group(name); }
  } const unregister{name};
  body(rank, name);
}

}  // namespace

void run_ranks(int world, const std::function<void(int rank, const std::string& group)>& body) {
  const auto room = std::make_shared<Room>(world);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run_rank(rank, world, room, store, body);
        room->leave(rank);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        first = first ? first : std::current_exception();
        room->fail();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

}  // namespace nsp::test
