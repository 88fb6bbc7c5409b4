// A request is a packaged task: its future carries the plan, the exception, or, when the task is
// dropped, a broken promise.
#include "nsp/planner/queue.h"

#include <utility>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::size_t positive(const char* field, std::int32_t value) {
  if (value < 1) {
    bad_input(field, value, "must be at least 1");
  }
  return static_cast<std::size_t>(value);
}

[[noreturn]] void closed() {
  throw Error("plan queue: closed; no plan comes any more");
}

}  // namespace

PlanQueue::PlanQueue(Planner planner, std::int32_t threads, std::int32_t capacity)
    : planner_(std::move(planner)), capacity_(positive("capacity", capacity)) {
  for (std::size_t i = 0; i < positive("threads", threads); ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

PlanQueue::PlanQueue(const ModelShape& shape,
                     const Profile& profile,
                     std::int32_t threads,
                     std::int32_t capacity)
    : PlanQueue(
          [shape, profile](const PlanRequest& request) { return plan(request, shape, profile); },
          threads,
          capacity) {}

PlanQueue::~PlanQueue() {
  close();
}

void PlanQueue::push(PlanRequest request) {
  Task task([this, own = std::move(request)] { return planner_(own); });
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return closed_ || results_.size() < capacity_; });
  if (closed_) {
    closed();
  }
  results_.push_back(task.get_future());
  waiting_.push_back(std::move(task));
  task_.notify_one();
  pushed_.notify_one();
}

PlanResult PlanQueue::take() {
  std::future<PlanResult> oldest;
  {
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [&] { return closed_ || !results_.empty(); });
    if (closed_) {
      closed();
    }
    oldest = std::move(results_.front());
    results_.pop_front();
    room_.notify_one();
  }
  try {
    return oldest.get();
  } catch (const std::future_error&) {  // its task was dropped
    closed();
  }
}

void PlanQueue::close() {
  std::deque<Task> dropped;  // their takers wake outside the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  std::swap(dropped, waiting_);
  room_.notify_all();
  pushed_.notify_all();
}

void PlanQueue::work(const std::stop_token& stop) {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      if (!task_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
        return;
      }
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace nsp
