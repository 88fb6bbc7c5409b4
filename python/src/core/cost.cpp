// Degrees for Python.
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/base/error.h"
#include "nsp/cost/cost_model.h"
#include "nsp/plan/tree.h"

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

}  // namespace

void bind_cost(py::module_& module) {
  module.def("allowed_degrees",
             &degrees_for,
             py::arg("heads"),
             py::arg("sp_max"),
             "Degrees up to sp_max that divide the query heads.");
}

}  // namespace nsp
