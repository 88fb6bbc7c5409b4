// Simulated steps for Python.
#include "nsp/sim/simulate.h"

#include <string>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/base/error.h"
#include "nsp/cluster/cluster.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"
#include "nsp/sim/timeline_text.h"
#include "nsp/sim/trace.h"
#include "request.h"

namespace py = pybind11;

namespace nsp {
namespace {

// Empty: the preset that the plan was made for.
ModelShape model_for(const Plan& plan, const std::string& given) {
  if (!given.empty()) {
    return resolve_model(given);
  }
  for (const ModelShape& preset : model_presets()) {
    if (model_hash(preset) == plan.model_hash) {
      return preset;
    }
  }
  bad_input("model", "''", "is needed: the plan was made for none of the presets");
}

// Empty: the preset that the plan was made with.
Profile profile_for(const Plan& plan, const ModelShape& shape, const std::string& given) {
  if (!given.empty()) {
    return find_profile(shape, given);
  }
  for (const Cluster& preset : cluster_presets()) {
    Profile profile = make_profile(shape, preset);
    if (profile_hash(profile) == plan.profile_hash) {
      return profile;
    }
  }
  bad_input("profile", "''", "is needed: the plan was made with none of the presets");
}

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
  const ModelShape shape = model_for(plan, model);
  const Timeline timeline = simulate(plan,
                                     shape,
                                     profile_for(plan, shape, profile),
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
