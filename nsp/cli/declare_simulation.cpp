#include "nsp/cli/declare.h"

namespace nsp {
namespace {

constexpr const char* kProfileHelp = "cluster preset (see nsp clusters), profile or cluster file";
constexpr const char* kCheckpointHelp =
    "run again in backward: none, full (whole layers), or marks (all but the attention of saved "
    "placements)";

void add_batches(CLI::App& compare, CompareCommand& options) {
  compare.add_option("--lengths", options.lengths, "trace file: one length a line, .gz allowed")
      ->required();
  compare.add_option("--max-length", options.max_length, "leave out longer sequences, tokens");
  compare.add_option("--batch-tokens", options.batch_tokens, "tokens of a batch")->required();
  compare
      .add_option("--batches", options.batches, "how many full batches, from the first, at most")
      ->capture_default_str();
}

void add_machine(CLI::App& compare, CompareCommand& options) {
  compare.add_option("--world", options.world, "number of ranks")->required();
  compare
      .add_option(
          "--sp-max", options.sp_max, "largest degree: a power of two that divides the world")
      ->required();
  compare.add_option("--model", options.model, "model preset (see nsp models) or JSON file")
      ->required();
  compare.add_option("--profile", options.profile, kProfileHelp)->capture_default_str();
  compare.add_option(
      "--ranks-per-host", options.ranks_per_host, "ranks of a host (default: the profile's)");
}

}  // namespace

void add_simulate(CLI::App& app, Command& command, SimulateCommand& options) {
  CLI::App* simulate =
      app.add_subcommand("simulate", "play a plan's step: seconds, where they go, memory, trace");
  simulate->add_option("plan", options.plan, "a plan file (nsp-plan/1)")->required();
  simulate->add_option(
      "--model", options.model, "model preset or JSON file (default: the preset of the plan)");
  simulate->add_option("--profile", options.profile, kProfileHelp)->capture_default_str();
  simulate->add_option("--checkpoint", options.checkpoint, kCheckpointHelp)->capture_default_str();
  simulate
      ->add_option(
          "--ep", options.ep, "ranks of an expert-parallel group, which meet in every layer")
      ->capture_default_str();
  simulate->add_flag("--serial", options.serial, "no overlap of attention and its communication");
  simulate->add_flag("--without-fsdp", options.without_fsdp, "no FSDP traffic");
  simulate->add_option(
      "--trace", options.trace, "write a Chrome trace here, for ui.perfetto.dev; .gz allowed");
  simulate->add_option("--json", options.json, kJsonHelp);
  simulate->footer(
      "Examples:\n  nsp simulate plan.json\n  nsp simulate plan.json --checkpoint full --trace "
      "step.json.gz");
  simulate->callback(
      [&] { command = [&](Streams streams) { return run_simulate(options, streams); }; });
}

void add_compare(CLI::App& app, Command& command, CompareCommand& options) {
  CLI::App* compare =
      app.add_subcommand("compare", "simulate every planner's plans for the same batches");
  add_batches(*compare, options);
  add_machine(*compare, options);
  compare->add_option("--token-budget",
                      options.token_budget,
                      "most tokens a rank holds in a round (default: 1.2 times the mean)");
  compare->add_option("--planners", options.planners, "names with commas between (default: all)")
      ->delimiter(',');
  compare->add_option("--effort", options.effort, "fast, default or thorough")
      ->capture_default_str();
  compare
      ->add_option(
          "--backends",
          options.backends,
          "what planner nsp may use: ulysses, gather, ring, usp-ring, usp-gather, usp, all")
      ->delimiter(',')
      ->capture_default_str();
  compare->add_option("--ep", options.ep, "ranks of an expert-parallel group")
      ->capture_default_str();
  compare->add_option("--checkpoint", options.checkpoint, kCheckpointHelp)->capture_default_str();
  compare->add_option("--json", options.json, kJsonHelp);
  compare->footer(
      "Example:\n  nsp compare --lengths lengths.txt --max-length 393216 --world 64 --sp-max 32 "
      "--model qwen3-30b-a3b \\\n    --batch-tokens 2097152 --batches 10 --planners "
      "nsp,static,megatron-dcp");
  compare->callback(
      [&] { command = [&](Streams streams) { return run_compare(options, streams); }; });
}

}  // namespace nsp
