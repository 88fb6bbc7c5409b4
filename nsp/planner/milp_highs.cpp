// HiGHS through its C interface. One thread and a fixed seed: the same program gives the same
// answer.
#include <cmath>
#include <interfaces/highs_c_api.h>
#include <memory>
#include <string>

#include "nsp/base/error.h"
#include "nsp/planner/milp.h"

namespace nsp {
namespace {

struct Destroy {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using Highs = std::unique_ptr<void, Destroy>;

HighsInt size_of(std::size_t count) {
  return static_cast<HighsInt>(count);
}

void require(HighsInt status, const char* what) {
  if (status == kHighsStatusError) {
    throw Error(std::string("HiGHS failed at: ") + what);
  }
}

// Column-wise to HiGHS's arrays, rows compressed.
struct Arrays {
  explicit Arrays(const Milp& milp) {
    for (const Milp::Column& column : milp.columns) {
      cost.push_back(column.cost);
      lower.push_back(column.lower);
      upper.push_back(column.upper);
      integrality.push_back(column.integer ? kHighsVarTypeInteger : kHighsVarTypeContinuous);
    }
    for (const Milp::Row& row : milp.rows) {
      row_lower.push_back(row.lower);
      row_upper.push_back(row.upper);
      start.push_back(size_of(index.size()));
      for (const Milp::Entry& entry : row.entries) {
        index.push_back(size_of(entry.column));
        factor.push_back(entry.factor);
      }
    }
    start.push_back(size_of(index.size()));
  }

  std::vector<double> cost, lower, upper, row_lower, row_upper, factor;
  std::vector<HighsInt> integrality, start, index;
};

void set_options(void* highs, const MilpLimits& limits) {
  require(Highs_setBoolOptionValue(highs, "output_flag", 0), "output_flag");
  require(Highs_setIntOptionValue(highs, "threads", 1), "threads");
  require(Highs_setStringOptionValue(highs, "parallel", "off"), "parallel");
  require(Highs_setIntOptionValue(highs, "random_seed", 0), "random_seed");
  require(Highs_setIntOptionValue(highs, "mip_max_nodes", static_cast<HighsInt>(limits.nodes)),
          "mip_max_nodes");
  require(Highs_setDoubleOptionValue(highs, "mip_rel_gap", limits.gap), "mip_rel_gap");
  require(Highs_setDoubleOptionValue(highs, "mip_heuristic_effort", limits.effort),
          "mip_heuristic_effort");
}

bool pass(void* highs, const Milp& milp) {
  const Arrays arrays(milp);
  return Highs_passMip(highs,
                       size_of(milp.columns.size()),
                       size_of(milp.rows.size()),
                       size_of(arrays.index.size()),
                       kHighsMatrixFormatRowwise,
                       kHighsObjSenseMinimize,
                       0,
                       arrays.cost.data(),
                       arrays.lower.data(),
                       arrays.upper.data(),
                       arrays.row_lower.data(),
                       arrays.row_upper.data(),
                       arrays.start.data(),
                       arrays.index.data(),
                       arrays.factor.data(),
                       arrays.integrality.data()) != kHighsStatusError;
}

MilpAnswer answer_of(void* highs, const Milp& milp) {
  HighsInt status = kHighsSolutionStatusNone;
  Highs_getIntInfoValue(highs, "primal_solution_status", &status);
  MilpAnswer answer;
  if (status != kHighsSolutionStatusFeasible) {
    return answer;
  }
  answer.values.resize(milp.columns.size());
  require(Highs_getSolution(highs, answer.values.data(), nullptr, nullptr, nullptr), "solution");
  for (std::size_t i = 0; i < milp.columns.size(); ++i) {
    if (milp.columns[i].integer) {
      answer.values[i] = std::round(answer.values[i]);
    }
  }
  answer.objective = Highs_getObjectiveValue(highs);
  answer.optimal = Highs_getModelStatus(highs) == kHighsModelStatusOptimal;
  return answer;
}

}  // namespace

bool has_milp() {
  return true;
}

void require_milp() {}

MilpAnswer solve_milp(const Milp& milp,
                      const MilpLimits& limits,
                      const std::vector<double>& start) {
  const Highs highs(Highs_create());
  set_options(highs.get(), limits);
  if (!pass(highs.get(), milp)) {
    return {};
  }
  if (!start.empty()) {
    require(Highs_setSolution(highs.get(), start.data(), nullptr, nullptr, nullptr), "start");
  }
  return Highs_run(highs.get()) == kHighsStatusError ? MilpAnswer{} : answer_of(highs.get(), milp);
}

}  // namespace nsp
