#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

#include "nsp/base/error.h"
#include "nsp/cli/comparison.h"
#include "nsp/cli/output.h"
#include "nsp/cli/planning.h"
#include "nsp/cost/make_profile.h"
#include "nsp/sim/simulate.h"
#include "nsp/workload/trace.h"

namespace nsp {
namespace {

using Lengths = std::vector<std::int64_t>;

// One line that is written over, on a terminal, once it takes long.
class Progress {
 public:
  explicit Progress(Streams streams)
      : err_(streams.err), shown_(&streams.err == &std::cerr && isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress& operator=(Progress&&) = delete;

  void show(const std::string& text) {
    if (shown_ && std::chrono::steady_clock::now() - start_ > std::chrono::seconds(1)) {
      err_ << "\r\x1b[K" << text << std::flush;
      dirty_ = true;
    }
  }

 private:
  void clear() {
    if (dirty_) {
      err_ << "\r\x1b[K" << std::flush;
    }
  }

  std::ostream& err_;
  bool shown_;
  bool dirty_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<Lengths> batches_of(const CompareCommand& options) {
  if (options.batches < 1) {
    bad_input("--batches", options.batches, "must be at least 1");
  }
  const PlanningOptions& planning = options.planning;
  auto batches =
      full_batches(load_lengths(planning.lengths), planning.max_length, options.batch_tokens);
  if (batches.empty()) {
    bad_input("--batch-tokens",
              options.batch_tokens,
              planning.lengths + " does not fill one batch; give fewer");
  }
  batches.resize(std::min(batches.size(), static_cast<std::size_t>(options.batches)));
  return batches;
}

std::vector<std::string> planners_of(const CompareCommand& options) {
  std::vector<std::string> names = planner_names();
  std::erase_if(names, [](const std::string& name) { return name.ends_with(":K"); });
  if (options.planners.empty()) {
    return names;
  }
  std::vector<std::string> chosen;
  for (const std::string& planner : options.planners) {
    const std::string kind = planner.substr(0, planner.find(':'));
    if (std::ranges::find(names, kind) == names.end()) {
      bad_input(
          "--planners", "'" + planner + "'", fmt::format("must be of {}", fmt::join(names, ", ")));
    }
    if (std::ranges::find(chosen, planner) == chosen.end()) {
      chosen.push_back(planner);
    }
  }
  return chosen;
}

// Of nsp; where none are given, all that its rivals have.
std::vector<std::string> backends_of(const CompareCommand& options) {
  const std::vector<std::string>& given = options.planning.backends;
  return given.empty() ? backends_used(planners_of(options)) : given;
}

// Where all planners run: the same machine, the same batches.
struct Course {
  ModelShape shape;
  Profile profile;
  SimulateOptions simulation;
  std::vector<Lengths> batches;
};

PlannedBatch simulated(const PlanResult& result, const Course& course) {
  const Timeline timeline = simulate(result.plan, course.shape, course.profile, course.simulation);
  return {.step_seconds = static_cast<double>(timeline.step) / 1e9,
          .load_seconds = result.plan.predicted.forward + result.plan.predicted.backward,
          .bound_seconds = result.plan.bound_seconds,
          .planning_ms = result.plan.planning_ms,
          .rounds = std::ssize(result.plan.rounds)};
}

// `refusals`: a planner's bad input (a degree, a solver that this build lacks) is the reason why a
// batch has no plan; otherwise it is thrown.
PlannerRow run_planner(PlanRequest request,
                       const Course& course,
                       bool refusals,
                       Progress& progress) {
  PlannerRow row{.planner = request.planner};
  for (const Lengths& lengths : course.batches) {
    auto& batch = row.batches.emplace_back();
    progress.show(fmt::format(
        "{}: batch {} of {}", request.planner, row.batches.size(), course.batches.size()));
    request.lengths = lengths;
    std::string why;
    try {
      const PlanResult result = plan(request, course.shape, course.profile);
      if (result.plan.feasible) {
        batch = simulated(result, course);
        continue;
      }
      why = result.why_infeasible;
    } catch (const BadInput& error) {
      if (!refusals) {
        throw;
      }
      why = error.what();
    }
    row.why_none = row.why_none.empty() ? why : row.why_none;
  }
  return row;
}

std::vector<PlannerRow> run_planners(const CompareCommand& options,
                                     const Course& course,
                                     Streams streams) {
  std::vector<PlannerRow> rows;
  Progress progress(streams);
  for (const std::string& planner : planners_of(options)) {
    PlanRequest request = request_of(options.planning);
    request.planner = planner;
    request.backends = planner == "nsp" ? backends_of(options) : PlanRequest{}.backends;
    rows.push_back(run_planner(request, course, !rows.empty(), progress));
  }
  return rows;
}

std::string settings_line(const CompareCommand& options, std::size_t batches) {
  return fmt::format(
      "{} batches of {} tokens of {}, longest {}; {}, {}, {} ranks, sp_max {}, effort {}, "
      "checkpoint {}, ep {}; nsp with backends {}\n\n",
      batches,
      options.batch_tokens,
      options.planning.lengths,
      options.planning.max_length > 0 ? std::to_string(options.planning.max_length) : "any",
      options.planning.model,
      options.planning.profile,
      options.planning.world,
      options.planning.sp_max,
      options.planning.effort,
      options.checkpoint,
      options.planning.ep,
      fmt::join(backends_of(options), ", "));
}

Json settings_json(const CompareCommand& options) {
  const PlanningOptions& planning = options.planning;
  return {{"lengths", planning.lengths},
          {"world", planning.world},
          {"sp_max", planning.sp_max},
          {"model", planning.model},
          {"profile", planning.profile},
          {"ranks_per_host", planning.ranks_per_host},
          {"max_length", planning.max_length},
          {"batch_tokens", options.batch_tokens},
          {"token_budget", planning.token_budget},
          {"effort", planning.effort},
          {"backends", backends_of(options)},
          {"ep", planning.ep},
          {"checkpoint", options.checkpoint}};
}

}  // namespace

// The first planner's bad input is the caller's; what another one alone refuses is a footnote.
int run_compare(const CompareCommand& options, Streams streams) {
  const ModelShape shape = find_model(options.planning.model);
  const Course course{.shape = shape,
                      .profile = find_profile(shape, options.planning.profile),
                      .simulation = {.checkpointing = parse_checkpointing(options.checkpoint),
                                     .ep = options.planning.ep},
                      .batches = batches_of(options)};
  const std::vector<PlannerRow> rows = run_planners(options, course, streams);
  Json json = comparison_json(rows);
  json["settings"] = settings_json(options);
  const std::string table = settings_line(options, course.batches.size()) + comparison_table(rows);
  write_result(options.json, json, table, streams);
  if (!any_planned(rows)) {
    streams.err << "nsp: no plan fits: " << rows.front().why_none << "\n";
    return 1;
  }
  return 0;
}

}  // namespace nsp
