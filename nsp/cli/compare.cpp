#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>
#include <utility>

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
  if (options.planners.empty()) {
    std::vector<std::string> names = planner_names();
    std::erase_if(names, [](const std::string& name) { return name.ends_with(":K"); });
    return names;
  }
  std::vector<std::string> chosen;
  for (const std::string& planner : options.planners) {
    if (std::ranges::find(chosen, planner) == chosen.end()) {
      chosen.push_back(planner);
    }
  }
  return chosen;
}

// Of nsp; where none are given, all that its rivals have; empty where nsp is not compared.
std::vector<std::string> backends_of(const CompareCommand& options) {
  const std::vector<std::string> planners = planners_of(options);
  if (std::ranges::find(planners, "nsp") == planners.end()) {
    return {};
  }
  const std::vector<std::string>& given = options.planning.backends;
  return given.empty() ? backends_used(planners) : given;
}

// Slips of the pen end the comparison before it starts, wherever they stand.
void check_words(const CompareCommand& options) {
  PlanRequest request = request_of(options.planning);
  for (const std::string& planner : planners_of(options)) {
    request.planner = planner;
    check_names(request);
  }
  if (!options.planning.backends.empty() && backends_of(options).empty()) {
    bad_input("--backends",
              fmt::format("{}", fmt::join(options.planning.backends, ",")),
              "is for planner nsp, which is not compared; leave it out");
  }
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

// What planners made of the batches. An answer is a plan, or that none fits; a refusal is a degree,
// a solver that this build lacks or that failed.
struct Results {
  std::vector<PlannerRow> rows;
  bool answered = false;
  std::exception_ptr refusal;  // the first
};

void run_planner(PlanRequest request, const Course& course, Progress& progress, Results& results) {
  PlannerRow& row = results.rows.emplace_back();
  row.planner = request.planner;
  const auto refused = [&](const std::exception& error) {
    results.refusal = results.refusal ? results.refusal : std::current_exception();
    row.why_none = row.why_none.empty() ? error.what() : row.why_none;
  };
  for (const Lengths& lengths : course.batches) {
    auto& batch = row.batches.emplace_back();
    progress.show(fmt::format(
        "{}: batch {} of {}", request.planner, row.batches.size(), course.batches.size()));
    request.lengths = lengths;
    try {
      const PlanResult result = plan(request, course.shape, course.profile);
      if (result.plan.feasible) {
        batch = simulated(result, course);
      } else if (row.why_none.empty()) {
        row.why_none = result.why_infeasible;
      }
      results.answered = true;
    } catch (const BadInput& error) {
      refused(error);
    } catch (const Error& error) {
      refused(error);
    }
  }
}

// What every planner refuses is the caller's; what some refuse is a footnote.
std::vector<PlannerRow> run_planners(const CompareCommand& options,
                                     const Course& course,
                                     Streams streams) {
  Results results;
  Progress progress(streams);
  for (const std::string& planner : planners_of(options)) {
    PlanRequest request = request_of(options.planning);
    request.checkpointing = course.simulation.checkpointing != Checkpointing::kNone;
    request.planner = planner;
    request.backends = planner == "nsp" ? backends_of(options) : PlanRequest{}.backends;
    run_planner(request, course, progress, results);
  }
  if (!results.answered && results.refusal) {
    std::rethrow_exception(results.refusal);
  }
  return std::move(results.rows);
}

std::string settings_line(const CompareCommand& options, std::size_t batches) {
  const std::vector<std::string> backends = backends_of(options);
  return fmt::format(
      "{} batch{} of {} tokens of {}, longest {}; {}, {}, {} ranks, sp_max {}, effort {}, "
      "checkpoint {}, ep {}{}{}\n\n",
      batches,
      batches == 1 ? "" : "es",
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
      backends.empty() ? "" : "; nsp with backends ",
      fmt::join(backends, ", "));
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

int run_compare(const CompareCommand& options, Streams streams) {
  check_words(options);
  check_writable("--json", options.json);
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
