#include <cstdint>
#include <vector>

#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/workload/order.h"
#include "nsp/workload/trace.h"

namespace py = pybind11;

namespace nsp {

void bind_workload(py::module_& m) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  m.def("load_lengths",
        &load_lengths,
        py::arg("path"),
        Unlocked(),
        "Lengths of a trace file, one a line, .gz allowed.");
  m.def(
      "full_batches",
      [](const std::vector<std::int64_t>& lengths,
         std::int64_t max_length,
         std::int64_t batch_tokens) { return full_batches(lengths, max_length, batch_tokens); },
      py::arg("lengths"),
      py::arg("max_length"),
      py::arg("batch_tokens"),
      Unlocked(),
      "Consecutive full batches; max_length 0: no limit.");
  m.def("permutation",
        &permutation,
        py::arg("count"),
        py::arg("seed"),
        py::arg("epoch"),
        Unlocked(),
        "The order of an epoch, equal on every machine.");
}

}  // namespace nsp
