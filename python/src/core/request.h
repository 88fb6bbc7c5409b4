// The settings of a plan as Python's keywords: what _core.plan and _core.PlanQueue share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "nsp/planner/planner.h"

namespace nsp {

// A preset's name, a path, or a ModelShape as JSON text.
ModelShape resolve_model(const std::string& model);

struct Settings {
  PlanRequest without_lengths;
  std::string model;
  std::string profile;

  ModelShape shape() const { return resolve_model(model); }
  PlanRequest request(std::vector<std::int64_t> lengths) const;
};

// TypeError for a keyword that is unknown or missing, ValueError for a bad name.
Settings settings_of(const pybind11::kwargs& keywords);

}  // namespace nsp
