// Simulated steps for Python.
#include "nsp/sim/simulate.h"

#include <string>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"
#include "nsp/sim/timeline_text.h"
#include "nsp/sim/trace.h"
#include "request.h"

namespace py = pybind11;

namespace nsp {
namespace {

std::string simulated(const std::string& text,
                      const std::string& model,
                      const std::string& profile,
                      const std::string& checkpoint,
                      std::int32_t ep,
                      bool overlap,
                      bool fsdp,
                      const std::string& trace) {
  const Plan plan = parse_plan(text);
  check(plan);
  const ModelShape shape = resolve_model(model);
  const Timeline timeline = simulate(plan,
                                     shape,
                                     find_profile(shape, profile),
                                     {.fsdp = fsdp,
                                      .overlap = overlap,
                                      .checkpointing = parse_checkpointing(checkpoint),
                                      .ep = ep,
                                      .spans = !trace.empty()});
  if (!trace.empty()) {
    save_trace(timeline, trace);
  }
  return to_json(timeline).dump();
}

}  // namespace

void bind_simulate(py::module_& module) {
  module.def("simulate",
             &simulated,
             py::arg("plan"),
             py::kw_only(),
             py::arg("model"),
             py::arg("profile"),
             py::arg("checkpoint") = "none",
             py::arg("ep") = 1,
             py::arg("overlap") = true,
             py::arg("fsdp") = true,
             py::arg("trace") = "",
             py::call_guard<py::gil_scoped_release>(),
             "A plan's step, played: JSON of seconds, breakdown and memory; `trace`: a path for a "
             "Chrome trace. ValueError for a bad plan or argument.");
}

}  // namespace nsp
