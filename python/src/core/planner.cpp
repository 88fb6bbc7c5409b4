// Planning and evaluation for Python. A plan crosses the border as its JSON bytes.
#include "nsp/planner/planner.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/cost/evaluate.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/plan_json.h"
#include "nsp/planner/bound.h"

namespace py = pybind11;

namespace nsp {
namespace {

ModelShape resolve_model(const std::string& model) {
  return model.starts_with('{') ? model_from_json(parse_json(model, "model")) : find_model(model);
}

std::pair<py::bytes, std::string> plan_bytes(std::vector<std::int64_t> lengths,
                                             std::int32_t world,
                                             std::int32_t sp_max,
                                             std::int32_t ranks_per_host,
                                             std::int64_t token_budget,
                                             const std::string& planner,
                                             const std::string& effort,
                                             const std::string& model,
                                             const std::string& profile,
                                             const std::string& over_length,
                                             std::vector<std::string> backends,
                                             std::int32_t ep) {
  std::string text;
  std::string why;
  {
    const py::gil_scoped_release unlocked;
    const ModelShape shape = resolve_model(model);
    PlanResult result = plan({.lengths = std::move(lengths),
                              .world = world,
                              .ranks_per_host = ranks_per_host,
                              .sp_max = sp_max,
                              .token_budget = token_budget,
                              .planner = planner,
                              .effort = effort,
                              .over_length = parse_over_length(over_length),
                              .backends = std::move(backends),
                              .ep = ep},
                             shape,
                             find_profile(shape, profile));
    text = to_json(result.plan).dump();
    why = std::move(result.why_infeasible);
  }
  return {py::bytes(text), why};
}

py::dict evaluate_bytes(const py::bytes& bytes,
                        const std::string& model,
                        const std::string& profile,
                        std::int32_t ep) {
  const Plan plan = parse_plan(std::string_view(bytes));
  const ModelShape shape = resolve_model(model);
  const CostModel costs(shape, find_profile(shape, profile), plan.ranks_per_host, ep);
  const Predicted found = predicted(evaluate(costs, plan));
  std::vector<std::int64_t> tokens;
  std::vector<Backend> backends = {Backend::kUlysses};  // and what else the plan uses
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      tokens.push_back(placement.tokens);
      backends.push_back(placement.backend);
    }
  }
  const std::int64_t budget = plan.feasible ? plan.token_budget : 0;
  std::ranges::sort(backends);
  backends.erase(std::ranges::unique(backends).begin(), backends.end());
  const std::int64_t bound = lower_bound(costs, tokens, plan.world, plan.sp_max, budget, backends);
  using namespace py::literals;
  return py::dict("seconds"_a = found.seconds,
                  "forward"_a = found.forward,
                  "backward"_a = found.backward,
                  "bound"_a = static_cast<double>(bound) / 1e9,
                  "tokens_max"_a = found.tokens_max);
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def(
      "plan",
      &plan_bytes,
      py::arg("lengths"),
      py::kw_only(),
      py::arg("world"),
      py::arg("sp_max"),
      py::arg("ranks_per_host") = 0,
      py::arg("token_budget") = 0,
      py::arg("planner") = "algorithm1",
      py::arg("effort") = "default",
      py::arg("model"),
      py::arg("profile"),
      py::arg("over_length") = "error",
      py::arg("backends") = std::vector<std::string>{"ulysses"},
      py::arg("ep") = 1,
      "Plan one batch: (plan JSON, why nothing fits or ''). Releases the GIL. ranks_per_host 0: "
      "the "
      "profile's; token_budget 0: ceil(1.2 x tokens / world). ValueError for a bad request.");
  module.def("evaluate",
             &evaluate_bytes,
             py::arg("plan"),
             py::arg("model"),
             py::arg("profile"),
             py::arg("ep") = 1,
             "Seconds of the whole step; forward, backward and bound of one layer; fullest rank's "
             "tokens.");
  module.def("planners", &planner_names, "Names that plan(planner=...) accepts.");
}

}  // namespace nsp
