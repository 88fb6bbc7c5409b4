// What steps hold in memory, for Python.
#include <array>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/plan/plan_json.h"
#include "nsp/sim/rank_rows.h"
#include "nsp/sim/row_bytes.h"
#include "request.h"

namespace py = pybind11;

namespace nsp {
namespace {

using Counts = std::array<std::int64_t, 10>;

std::vector<std::vector<Counts>> counts(const std::string& text, std::int64_t kv_heads) {
  const Plan plan = parse_plan(text);
  std::vector<std::vector<Counts>> rounds;
  for (const Round& round : plan.rounds) {
    std::vector<Counts>& ranks = rounds.emplace_back();
    for (const RankRows& rows : rank_rows(round, plan.world, kv_heads)) {
      ranks.push_back({rows.tokens,
                       rows.read,
                       rows.exchanged,
                       rows.exchanged_heads,
                       rows.launched,
                       rows.saved,
                       rows.saved_exchanged,
                       rows.saved_heads,
                       rows.saved_qkv,
                       rows.offloaded});
    }
  }
  return rounds;
}

py::dict bytes_of_a_row(const std::string& model, bool qk_norm) {
  const RowBytes row = row_bytes(resolve_model(model), qk_norm);
  return py::dict(py::arg("input") = row.input,
                  py::arg("kept") = row.kept,
                  py::arg("kept_input") = row.kept_input,
                  py::arg("read") = row.read,
                  py::arg("exchanged") = row.exchanged,
                  py::arg("kv_head") = row.kv_head,
                  py::arg("saved") = row.saved,
                  py::arg("offloaded") = row.offloaded,
                  py::arg("norm") = row.norm,
                  py::arg("attention") = row.attention,
                  py::arg("first") = row.first,
                  py::arg("late") = row.late,
                  py::arg("at_attention") = row.at_attention);
}

}  // namespace

void bind_memory(py::module_& module) {
  module.def("rank_rows",
             &counts,
             py::arg("plan"),
             py::arg("kv_heads"),
             py::call_guard<py::gil_scoped_release>(),
             "By round and rank: rows (all, read, exchanged, exchanged_heads, launched, saved, "
             "saved_exchanged, saved_heads, saved_qkv, offloaded), as nsp/sim/rank_rows.h says.");
  module.def("row_bytes",
             &bytes_of_a_row,
             py::arg("model"),
             py::arg("qk_norm"),
             "Bytes of a row in one eager decoder layer, as nsp/sim/row_bytes.h says.");
}

}  // namespace nsp
