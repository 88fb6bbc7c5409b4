// Plans ahead: background threads plan coming batches while the caller's devices work.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "nsp/planner/planner.h"

namespace nsp {

// Plans come out in the order in which their requests went in, each the same as plan() gives.
// push, take and close may be called from any threads.
class PlanQueue {
 public:
  using Planner = std::function<PlanResult(const PlanRequest&)>;  // called from several threads

  // Throws BadInput unless both numbers are at least 1.
  PlanQueue(Planner planner, std::int32_t threads, std::int32_t capacity);
  PlanQueue(const ModelShape& shape,
            const Profile& profile,
            std::int32_t threads,
            std::int32_t capacity);
  // Drops what has not begun; waits only for what is being planned.
  ~PlanQueue();
  PlanQueue(const PlanQueue&) = delete;
  PlanQueue& operator=(const PlanQueue&) = delete;

  // Waits while `capacity` requests are in and not yet taken.
  void push(PlanRequest request);
  // The oldest request's plan; waits for it, or for a push. Throws what its planning threw.
  PlanResult take();
  // Drops what has not begun. From now on push and take throw Error, those that wait too; a take
  // whose request is being planned still gets it.
  void close();

 private:
  using Task = std::packaged_task<PlanResult()>;

  void work(const std::stop_token& stop);

  Planner planner_;
  std::size_t capacity_;
  std::mutex mutex_;  // guards closed_, waiting_, results_
  std::condition_variable room_;
  std::condition_variable pushed_;
  std::condition_variable_any task_;
  bool closed_ = false;
  std::deque<Task> waiting_;
  std::deque<std::future<PlanResult>> results_;  // of all requests not yet taken, oldest first
  std::vector<std::jthread> threads_;            // last: stopped and joined before the rest goes
};

}  // namespace nsp
