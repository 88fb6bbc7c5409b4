// Planning for Python. A plan crosses the border as its JSON bytes.
#include "nsp/planner/planner.h"

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

py::tuple plan_bytes(std::vector<std::int64_t> lengths, const py::kwargs& settings) {
  const Settings given = settings_of(settings);
  std::string text;
  std::string why;
  {
    const py::gil_scoped_release unlocked;
    const ModelShape shape = given.shape();
    PlanResult result =
        plan(given.request(std::move(lengths)), shape, find_profile(shape, given.profile));
    text = json_text(result.plan);
    why = std::move(result.why_infeasible);
  }
  return py::make_tuple(py::bytes(text), why);
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def("plan",
             &plan_bytes,
             py::arg("lengths"),
             "Plan one batch: (plan JSON, why nothing fits or ''). Releases the GIL. Settings: "
             "world, sp_max, model, profile; ranks_per_host, token_budget, planner, effort, "
             "over_length, checkpointing, byte_budget, host_budget, mark_order, backends, ep as in "
             "the command line. "
             "ValueError for a bad request.");
}

}  // namespace nsp
