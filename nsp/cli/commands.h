// The subcommands of `nsp` as functions on plain options. Each returns the exit code: 0 done, 1 no
// plan fits or a check failed. Bad input and failures are thrown (BadInput, Error); `cli.h` turns
// them into one sentence and exit code 2.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace nsp {

struct Streams {
  std::ostream& out;  // tables and JSON
  std::ostream& err;  // one sentence when the exit code is not 0; notes and progress otherwise
};

// Which sequences are planned, for which machine, how: what `plan` and `compare` share.
struct PlanningOptions {
  std::string lengths;          // trace file
  std::int64_t max_length = 0;  // tokens; 0: no limit
  std::int32_t world = 1;
  std::int32_t sp_max = 1;
  std::string model;
  std::string profile = "h200";
  std::int32_t ranks_per_host = 0;  // 0: from the profile (PlanRequest)
  std::int64_t token_budget = 0;    // tokens a rank a round; 0: 1.2 times the mean
  std::string effort = "default";
  std::vector<std::string> backends = {};  // beside local; empty: ulysses, or what rivals have
  std::int32_t ep = 1;                     // ranks of an expert-parallel group
};

struct PlanOptions {
  PlanningOptions planning;
  std::optional<std::int64_t> batch_tokens = {};  // none: the whole file is one batch
  std::optional<std::int64_t> batch = {};         // needs batch_tokens
  std::string planner = "nsp";
  std::string over_length = "error";
  bool checkpointing = false;
  std::int64_t byte_budget = 0;  // saved attention output a rank and layer
  std::int64_t host_budget = 0;  // offloaded attention output a rank and layer
  std::string mark_order = "auto";
  std::string json = {};  // empty: no JSON; "-": standard output instead of the table; else a path
};

struct FileOptions {
  std::string plan;  // path of a nsp-plan/1 file
  std::string json = {};
};

struct ExplainOptions {
  FileOptions file;
  std::string model = {};  // empty: no bytes and seconds of saved attention output
  std::string profile = "h200";
};

struct SimulateCommand {
  std::string plan;   // path of a nsp-plan/1 file
  std::string model;  // empty: the preset that the plan was made for
  std::string profile = "h200";
  std::string checkpoint = "none";
  std::int32_t ep = 1;
  bool serial = false;
  bool without_fsdp = false;
  std::string trace = {};  // path of a Chrome trace, .gz allowed
  std::string json = {};
};

struct CompareCommand {
  PlanningOptions planning;
  std::int64_t batch_tokens = 0;
  std::int64_t batches = 10;               // at most
  std::vector<std::string> planners = {};  // empty: all
  std::string checkpoint = "none";
  std::string json = {};
};

int run_plan(const PlanOptions& options, Streams streams);
int run_explain(const ExplainOptions& options, Streams streams);
int run_check(const FileOptions& options, Streams streams);
int run_simulate(const SimulateCommand& options, Streams streams);
int run_compare(const CompareCommand& options, Streams streams);
int run_models(const std::string& json, Streams streams);
int run_clusters(const std::string& json, Streams streams);

}  // namespace nsp
