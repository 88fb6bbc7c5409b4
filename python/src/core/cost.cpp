// Degrees and ways for Python.
#include <string>
#include <tuple>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/base/error.h"
#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/tree.h"
#include "nsp/plan/way.h"
#include "nsp/planner/choice.h"

namespace py = pybind11;

namespace nsp {
namespace {

std::vector<std::int32_t> degrees_for(std::int64_t heads, std::int32_t sp_max) {
  if (heads < 1) {
    bad_input("heads", heads, "must be at least 1");
  }
  check_tree(sp_max, sp_max);
  return allowed_degrees(heads, sp_max);
}

using GivenWay = std::tuple<std::int32_t, std::string, std::int32_t>;

std::vector<GivenWay> ways_for(std::int64_t heads,
                               std::int32_t sp_max,
                               std::int32_t ranks_per_host,
                               const std::vector<std::string>& backends) {
  if (heads < 1) {
    bad_input("heads", heads, "must be at least 1");
  }
  check_tree(sp_max, sp_max);
  PlanRequest request;
  request.backends = backends;
  std::vector<GivenWay> ways;
  for (const Way& way : allowed_ways({heads, ranks_per_host, sp_max}, parse_backends(request))) {
    ways.emplace_back(way.degree, name(way.backend), way.ulysses_degree);
  }
  return ways;
}

}  // namespace

void bind_cost(py::module_& module) {
  module.def("allowed_degrees",
             &degrees_for,
             py::arg("heads"),
             py::arg("sp_max"),
             "Degrees up to sp_max that divide the query heads.");
  module.def(
      "allowed_ways",
      &ways_for,
      py::arg("heads"),
      py::arg("sp_max"),
      py::arg("ranks_per_host"),
      py::arg("backends"),
      "(degree, backend, ulysses_degree) of every way that these backends allow, and local.");
}

}  // namespace nsp
