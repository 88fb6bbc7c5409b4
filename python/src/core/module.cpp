#include "bind.h"

PYBIND11_MODULE(_core, m) {
  m.doc() =
      "NSP without torch: workloads, plans, costs, planners. Plans pass as nsp-plan/1 JSON bytes.";
  nsp::bind_workload(m);
  nsp::bind_plan(m);
  nsp::bind_cost(m);
  nsp::bind_planner(m);
  nsp::bind_simulate(m);
  nsp::bind_queue(m);
  nsp::bind_memory(m);
}
