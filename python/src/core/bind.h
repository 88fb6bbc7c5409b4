// nsp._core in parts: one function a C++ folder. BadInput becomes ValueError, Error RuntimeError.
#pragma once

#include <pybind11/pybind11.h>

namespace nsp {

void bind_workload(pybind11::module_& m);
void bind_plan(pybind11::module_& m);
void bind_cost(pybind11::module_& m);
void bind_planner(pybind11::module_& m);
void bind_simulate(pybind11::module_& m);
void bind_queue(pybind11::module_& m);
void bind_memory(pybind11::module_& m);

}  // namespace nsp
