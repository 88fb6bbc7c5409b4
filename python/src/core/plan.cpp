#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

#include "bind.h"
#include "nsp/base/error.h"
#include "nsp/plan/check.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/plan_json.h"

namespace py = pybind11;

namespace nsp {
namespace {

// sequence, tokens, first_rank, degree; and where it is not the degree's own way, how it runs.
using GivenPlace = std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t>;
using GivenWay =
    std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t, std::string, std::int32_t>;
using Given = std::variant<GivenPlace, GivenWay>;
using LeafFirst = std::vector<std::vector<std::int32_t>>;
// By round: degree, tokens.
using Cuts = std::vector<std::vector<std::pair<std::int32_t, std::int64_t>>>;
using RowEntry = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

const Round& round_of(const Plan& plan, std::int64_t round) {
  if (round < 0 || round >= std::ssize(plan.rounds)) {
    bad_input("round", round, "must be below the plan's " + std::to_string(plan.rounds.size()));
  }
  return plan.rounds[static_cast<std::size_t>(round)];
}

std::vector<RowEntry> row(const std::string& text, std::int64_t round, std::int32_t rank) {
  const Plan plan = parse_plan(text);
  check(plan);
  if (rank < 0 || rank >= plan.world) {
    bad_input("rank", rank, "must be below the plan's world, " + std::to_string(plan.world));
  }
  std::vector<RowEntry> entries;
  for (const Segment& segment : rank_row(round_of(plan, round), rank)) {
    entries.emplace_back(segment.sequence, segment.begin, segment.end);
  }
  return entries;
}

std::vector<std::int64_t> tokens(const std::string& text, std::int64_t round) {
  const Plan plan = parse_plan(text);
  check(plan);
  return rank_tokens(round_of(plan, round), plan.world);
}

Placement placement_of(const Given& given) {
  if (const auto* const place_only = std::get_if<GivenPlace>(&given)) {
    const auto& [sequence, length, first_rank, degree] = *place_only;
    return place(sequence, length, {first_rank, degree});
  }
  const auto& [sequence, length, first_rank, degree, backend, inner] = std::get<GivenWay>(given);
  return place(sequence, length, first_rank, {degree, backend_named(backend), inner});
}

void set_schedule(Round& round, std::size_t index, const LeafFirst& leaf_first, const Cuts& cuts) {
  Schedule& schedule = round.schedule;
  if (index < cuts.size()) {
    for (const auto& [degree, length] : cuts[index]) {
      schedule.cuts.push_back({.degree = degree, .tokens = length});
    }
    std::ranges::sort(schedule.cuts, std::greater<>{}, &LevelCut::degree);
    schedule.order = default_order(round);
  }
  if (index < leaf_first.size()) {
    const Issue leaf{.phase = Phase::kCompute, .degree = 1};
    std::erase(schedule.order, leaf);
    schedule.order.push_back(leaf);
    schedule.leaf_first = leaf_first[index];
  }
}

std::string make(const PlanSettings& settings,
                 const std::vector<std::vector<Given>>& rounds,
                 const LeafFirst& leaf_first,
                 const Cuts& cuts) {
  std::vector<std::vector<Placement>> placements;
  for (const std::vector<Given>& given : rounds) {
    placements.emplace_back();
    for (const Given& one : given) {
      placements.back().push_back(placement_of(one));
    }
  }
  const Plan plan =
      make_plan(settings, std::move(placements), {}, [&](Round& round, std::size_t index) {
        set_schedule(round, index, leaf_first, cuts);
      });
  check(plan);
  return json_text(plan);
}

Mark mark_named(const std::string& text) {
  for (const Mark mark : {Mark::kRecompute, Mark::kOffload, Mark::kSave, Mark::kSaveQkv}) {
    if (name(mark) == text) {
      return mark;
    }
  }
  bad_input("marks", "'" + text + "'", "must be recompute, offload, save or save_qkv");
}

// Marks by round, then by placement in increasing order of sequence.
std::string with_marks(const std::string& text,
                       const std::vector<std::vector<std::string>>& marks) {
  Plan plan = parse_plan(text);
  if (marks.size() != plan.rounds.size()) {
    bad_input("marks", marks.size(), "must be as many lists as the plan has rounds");
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    std::vector<Placement>& placements = plan.rounds[i].placements;
    if (marks[i].size() != placements.size()) {
      bad_input("marks", marks[i].size(), "must be as many as the round has placements");
    }
    for (std::size_t j = 0; j < placements.size(); ++j) {
      placements[j].mark = mark_named(marks[i][j]);
    }
  }
  seal(plan);
  check(plan);
  return json_text(plan);
}

// Everything but the placements: what a training loop looks at without paying for thousands of
// them.
py::dict header(const std::string& text) {
  Plan plan;
  {
    const py::gil_scoped_release unlocked;
    plan = parse_plan(text);
  }
  py::list dropped;
  for (const Dropped& one : plan.dropped) {
    dropped.append(py::make_tuple(one.sequence, one.tokens, one.kept, one.why));
  }
  const Predicted& predicted = plan.predicted;
  using namespace py::literals;
  return py::dict("world"_a = plan.world,
                  "ranks_per_host"_a = plan.ranks_per_host,
                  "sp_max"_a = plan.sp_max,
                  "token_budget"_a = plan.token_budget,
                  "planner"_a = plan.planner,
                  "feasible"_a = plan.feasible,
                  "num_sequences"_a = plan.num_sequences,
                  "num_tokens"_a = plan.num_tokens,
                  "num_rounds"_a = plan.rounds.size(),
                  "dropped"_a = dropped,
                  "predicted"_a = py::make_tuple(predicted.seconds,
                                                 predicted.forward,
                                                 predicted.backward,
                                                 predicted.tokens_max,
                                                 predicted.bytes_max),
                  "bound_seconds"_a = plan.bound_seconds,
                  "hash"_a = plan.hash,
                  "planning_ms"_a = plan.planning_ms);
}

}  // namespace

// Heavy parts run without the interpreter lock: plans are read and checked on loader threads.
void bind_plan(py::module_& m) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  m.def(
      "check",
      [](const std::string& plan) { return find_violations(parse_plan(plan)); },
      py::arg("plan"),
      Unlocked(),
      "Broken rules of a plan, one sentence each.");
  m.def("plan_header",
        &header,
        py::arg("plan"),
        "Reads a whole plan strictly and gives all fields but the placements.");
  m.def("rank_row",
        &row,
        py::arg("plan"),
        py::arg("round"),
        py::arg("rank"),
        Unlocked(),
        "(sequence, begin, end) in row order; a rank without tokens: [(-1, 0, 1)].");
  m.def("rank_tokens",
        &tokens,
        py::arg("plan"),
        py::arg("round"),
        Unlocked(),
        "Tokens that each rank owns.");
  m.def(
      "make_plan",
      [](std::int32_t world,
         std::int32_t sp_max,
         std::int32_t ranks_per_host,
         std::int64_t token_budget,
         const std::vector<std::vector<Given>>& rounds,
         const std::string& planner,
         const LeafFirst& leaf_first,
         const Cuts& cuts) {
        std::string text;
        {
          const py::gil_scoped_release release;
          text = make({.world = world,
                       .sp_max = sp_max,
                       .ranks_per_host = ranks_per_host,
                       .token_budget = token_budget,
                       .planner = planner},
                      rounds,
                      leaf_first,
                      cuts);
        }
        return py::bytes(text);
      },
      py::arg("world"),
      py::arg("sp_max"),
      py::arg("ranks_per_host"),
      py::arg("token_budget"),
      py::arg("rounds"),
      py::arg("planner") = "given",
      py::arg("leaf_first") = LeafFirst(),
      py::arg("cuts") = Cuts(),
      "A checked plan of given (sequence, tokens, first_rank, degree) or (..., backend, "
      "ulysses_degree), a list a round. leaf_first: of each round, how many of each rank's leaf "
      "sequences run first; the others then run after the levels. cuts: of each round, "
      "(degree, tokens) of levels that run as two waves, sequences of up to so many tokens and "
      "then "
      "the longer ones.");
  m.def(
      "with_marks",
      [](const std::string& plan, const std::vector<std::vector<std::string>>& marks) {
        return py::bytes(with_marks(plan, marks));
      },
      py::arg("plan"),
      py::arg("marks"),
      "The plan with these marks (recompute, offload, save, save_qkv), a list a round, by "
      "sequence.");
}

}  // namespace nsp
