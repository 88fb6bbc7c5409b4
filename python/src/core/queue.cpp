// The planning queue for Python: its threads never touch the interpreter, and whoever waits on it
// does so without the interpreter lock.
#include "nsp/planner/queue.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/plan_json.h"
#include "request.h"

namespace py = pybind11;

namespace nsp {
namespace {

class Queue {
 public:
  Queue(std::int32_t threads, std::int32_t capacity, const py::kwargs& keywords)
      : settings_(settings_of(keywords)) {
    const ModelShape shape = settings_.shape();
    queue_ = std::make_unique<PlanQueue>(
        shape, find_profile(shape, settings_.profile), threads, capacity);
  }
  ~Queue() {
    const py::gil_scoped_release unlocked;  // it waits for what is being planned
    queue_.reset();
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(std::vector<std::int64_t> lengths) {
    queue_->push(settings_.request(std::move(lengths)));
  }

  py::tuple take() {
    std::string text;
    std::string why;
    {
      const py::gil_scoped_release unlocked;
      PlanResult result = queue_->take();
      text = json_text(result.plan);
      why = std::move(result.why_infeasible);
    }
    return py::make_tuple(py::bytes(text), why);
  }

  void close() { queue_->close(); }

 private:
  Settings settings_;
  std::unique_ptr<PlanQueue> queue_;
};

}  // namespace

void bind_queue(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Queue>(module,
                    "PlanQueue",
                    "Plans coming batches on background threads; plans come out in order. Any "
                    "thread may call it.")
      .def(py::init<std::int32_t, std::int32_t, const py::kwargs&>(),
           py::arg("threads"),
           py::arg("capacity"),
           "Keywords: the settings of plan().")
      .def("push",
           &Queue::push,
           py::arg("lengths"),
           Unlocked(),
           "Waits while `capacity` batches are in and not yet taken. RuntimeError once closed.")
      .def("take",
           &Queue::take,
           "The oldest batch's (plan JSON, why nothing fits or ''); waits for it. Raises what its "
           "planning raised; RuntimeError once closed.")
      .def("close", &Queue::close, Unlocked(), "Drops what has not begun; wakes all who wait.");
}

}  // namespace nsp
