#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

#include "nsp/base/error.h"
#include "nsp/cli/comparison.h"
#include "nsp/cli/output.h"
#include "nsp/cost/make_profile.h"
#include "nsp/planner/planner.h"
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
  Progress& operator=(const Progress&) = delete;

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
  if (options.max_length < 0) {
    bad_input("--max-length", options.max_length, "must be at least 1, or 0 for no limit");
  }
  auto batches =
      full_batches(load_lengths(options.lengths), options.max_length, options.batch_tokens);
  if (batches.empty()) {
    bad_input("--batch-tokens",
              options.batch_tokens,
              options.lengths + " does not fill one batch; give fewer");
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

// Plans and simulates; an empty result and the reason where nothing fits.
std::optional<PlannedBatch> run_batch(const PlanRequest& request,
                                      const ModelShape& shape,
                                      const Profile& profile,
                                      const SimulateOptions& simulation,
                                      std::string& why) {
  const PlanResult result = plan(request, shape, profile);
  if (!result.plan.feasible) {
    why = result.why_infeasible.empty() ? "the token budget does not hold" : result.why_infeasible;
    return {};
  }
  const double load = result.plan.predicted.forward + result.plan.predicted.backward;
  const Timeline timeline = simulate(result.plan, shape, profile, simulation);
  return PlannedBatch{
      .step_seconds = static_cast<double>(timeline.step) / 1e9,
      .gap = result.plan.bound_seconds > 0 ? load / result.plan.bound_seconds - 1 : 0,
      .planning_ms = result.plan.planning_ms,
      .rounds = std::ssize(result.plan.rounds)};
}

std::string settings_line(const CompareCommand& options, std::size_t batches) {
  return fmt::format(
      "{} batches of {} tokens of {}; {}, {}, {} ranks, sp_max {}, effort {}, "
      "checkpoint {}\n\n",
      batches,
      options.batch_tokens,
      options.lengths,
      options.model,
      options.profile,
      options.world,
      options.sp_max,
      options.effort,
      options.checkpoint);
}

}  // namespace

// The first planner's bad input is the caller's; what another one alone refuses (a degree, a solver
// that this build lacks) is a footnote.
int run_compare(const CompareCommand& options, Streams streams) {
  const ModelShape shape = find_model(options.model);
  const Profile profile = find_profile(shape, options.profile);
  const SimulateOptions simulation{.checkpointing = parse_checkpointing(options.checkpoint),
                                   .ep = options.ep};
  const std::vector<Lengths> batches = batches_of(options);
  std::vector<PlannerRow> rows;
  Progress progress(streams);
  for (const std::string& planner : planners_of(options)) {
    PlannerRow row{.planner = planner};
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      progress.show(fmt::format("{}: batch {} of {}", planner, batch + 1, batches.size()));
      std::string why;
      try {
        row.batches.push_back(run_batch({.lengths = batches[batch],
                                         .world = options.world,
                                         .ranks_per_host = options.ranks_per_host,
                                         .sp_max = options.sp_max,
                                         .token_budget = options.token_budget,
                                         .planner = planner,
                                         .effort = options.effort,
                                         .backends = options.backends,
                                         .ep = options.ep},
                                        shape,
                                        profile,
                                        simulation,
                                        why));
      } catch (const BadInput& error) {
        if (rows.empty()) {
          throw;
        }
        why = error.what();
        row.batches.emplace_back();
      }
      row.why_none = row.why_none.empty() ? why : row.why_none;
    }
    rows.push_back(std::move(row));
  }
  Json json = comparison_json(rows);
  json["settings"] = {{"lengths", options.lengths},
                      {"world", options.world},
                      {"sp_max", options.sp_max},
                      {"model", options.model},
                      {"profile", options.profile},
                      {"max_length", options.max_length},
                      {"batch_tokens", options.batch_tokens},
                      {"effort", options.effort},
                      {"backends", options.backends},
                      {"ep", options.ep},
                      {"checkpoint", options.checkpoint}};
  const std::string table = settings_line(options, batches.size()) + comparison_table(rows);
  write_result(options.json, json, table, streams);
  return 0;
}

}  // namespace nsp
