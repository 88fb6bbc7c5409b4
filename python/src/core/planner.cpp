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
  module.def("plan",
             &plan_bytes,
             py::arg("lengths"),
             "Plan one batch: (plan JSON, why nothing fits or ''). Releases the GIL. Settings: "
             "world, sp_max, model, profile; ranks_per_host, token_budget, planner, effort, "
             "over_length, byte_budget, mark_order, backends, ep as in the command line. "
             "ValueError for a bad request.");
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
