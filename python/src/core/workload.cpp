#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/workload/order.h"

namespace py = pybind11;

namespace nsp {

void bind_workload(py::module_& m) {
  m.def("permutation",
        &permutation,
        py::arg("count"),
        py::arg("seed"),
        py::arg("epoch"),
        py::call_guard<py::gil_scoped_release>(),
        "The order of an epoch, equal on every machine.");
}

}  // namespace nsp
