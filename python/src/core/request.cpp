#include "request.h"

#include <utility>

#include <pybind11/stl.h>

#include "nsp/planner/mark_choice.h"

namespace py = pybind11;

namespace nsp {
namespace {

// Takes keywords one by one; what is left in the end is unknown.
class Keywords {
 public:
  explicit Keywords(const py::kwargs& given) : left_(py::dict(given)) {}

  template <class Value>
  void take(const char* name, Value& value) {
    if (left_.contains(name)) {
      value = take_required<Value>(name);
    }
  }

  template <class Value>
  Value take_required(const char* name) {
    if (!left_.contains(name)) {
      throw py::type_error("plan: keyword '" + std::string(name) + "' is missing");
    }
    try {
      Value value = left_[name].cast<Value>();
      left_.attr("pop")(name);
      return value;
    } catch (const py::cast_error&) {
      throw py::type_error("plan: keyword '" + std::string(name) + "' is " +
                           std::string(py::repr(left_[name])) + ", of a wrong type or range");
    }
  }

  void check_none_left() const {
    for (const auto& [name, value] : left_) {
      throw py::type_error("plan: keyword '" + name.cast<std::string>() + "' is unknown");
    }
  }

 private:
  py::dict left_;
};

}  // namespace

ModelShape resolve_model(const std::string& model) {
  return model.starts_with('{') ? model_from_json(parse_json(model, "model")) : find_model(model);
}

PlanRequest Settings::request(std::vector<std::int64_t> lengths) const {
  PlanRequest request = without_lengths;
  request.lengths = std::move(lengths);
  return request;
}

Settings settings_of(const py::kwargs& keywords) {
  Keywords left(keywords);
  Settings settings;
  settings.model = left.take_required<std::string>("model");
  settings.profile = left.take_required<std::string>("profile");
  PlanRequest& request = settings.without_lengths;
  request.world = left.take_required<std::int32_t>("world");
  request.sp_max = left.take_required<std::int32_t>("sp_max");
  left.take("ranks_per_host", request.ranks_per_host);
  left.take("token_budget", request.token_budget);
  left.take("planner", request.planner);
  left.take("effort", request.effort);
  std::string over_length = "error";
  left.take("over_length", over_length);
  request.over_length = parse_over_length(over_length);
  left.take("byte_budget", request.byte_budget);
  left.take("host_budget", request.host_budget);
  std::string mark_order = "auto";
  left.take("mark_order", mark_order);
  request.mark_order = parse_mark_order(mark_order);
  left.take("backends", request.backends);
  left.take("ep", request.ep);
  left.check_none_left();
  return settings;
}

}  // namespace nsp
