// Commands that plan batches of a trace.
#include "nsp/cli/declare.h"
#include "nsp/cli/size.h"

namespace nsp {
namespace {

void add_machine(CLI::App& command, PlanningOptions& options) {
  command.add_option("--world", options.world, "number of ranks")->required();
  command
      .add_option(
          "--sp-max", options.sp_max, "largest degree: a power of two that divides the world")
      ->required();
  command.add_option("--model", options.model, "model preset (see nsp models) or JSON file")
      ->required();
  command.add_option("--profile", options.profile, kProfileHelp)->capture_default_str();
  command.add_option("--ranks-per-host",
                     options.ranks_per_host,
                     "ranks of a host, a divisor of the world (default: the profile's, or the "
                     "greatest divisor that it shares with the world)");
}

// `backends`: the default, in words.
void add_planning(CLI::App& command, PlanningOptions& options, const std::string& backends) {
  command.add_option("--lengths", options.lengths, "trace file: one length a line, .gz allowed")
      ->required();
  command.add_option("--max-length", options.max_length, "leave out longer sequences, tokens");
  add_machine(command, options);
  command.add_option("--token-budget",
                     options.token_budget,
                     "most tokens a rank holds in a round (default: 1.2 times the mean); a larger "
                     "batch takes several rounds, planned together");
  command.add_option("--effort", options.effort, "fast, default or thorough")
      ->capture_default_str();
  command
      .add_option("--backends",
                  options.backends,
                  "what planner nsp may use: ulysses, gather, ring, usp-ring, usp-gather, usp, all "
                  "(default: " +
                      backends + ")")
      ->delimiter(',');
  command
      .add_option(
          "--ep", options.ep, "ranks of an expert-parallel group, which meet in every layer")
      ->capture_default_str();
}

void add_marks(CLI::App& command, PlanOptions& options) {
  command.add_flag(
      "--checkpointing",
      options.checkpointing,
      "layers run again in backward: judge the plan by such a step (implied by budgets "
      "of bytes)");
  command
      .add_option("--byte-budget",
                  options.byte_budget,
                  "bytes of attention output a rank may save of a layer, e.g. 512MiB or 1.5GiB "
                  "(default 0: recompute all)")
      ->transform(size_in_bytes());
  command
      .add_option("--host-budget",
                  options.host_budget,
                  "bytes of the rest that a rank may keep of a layer in memory of its host, where "
                  "copies hide behind computation (default 0: none)")
      ->transform(size_in_bytes());
  command
      .add_option(
          "--mark-order",
          options.mark_order,
          "what is saved first: seconds-per-byte, tree, or auto, the better by simulated step")
      ->capture_default_str();
}

}  // namespace

void add_plan(CLI::App& app, Command& command, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "plan one batch of a trace of lengths");
  add_planning(*plan, options.planning, "ulysses");
  plan->add_option(
      "--batch-tokens", options.batch_tokens, "tokens of a batch (default: the whole file)");
  plan->add_option("--batch", options.batch, "which full batch, from 0 (default 0)");
  plan->add_option("--planner",
                   options.planner,
                   "nsp, algorithm1, nsp-2l, megatron-dcp, flexsp, static[:K], static-tokens[:K], "
                   "static-usp[:K]")
      ->capture_default_str();
  plan->add_option("--over-length",
                   options.over_length,
                   "sequences that cannot fit: error, skip or truncate")
      ->capture_default_str();
  add_marks(*plan, options);
  plan->add_option("--json", options.json, kJsonHelp);
  plan->footer(
      "Example:\n  nsp plan --lengths lengths.txt --max-length 393216 --world 64 --sp-max 32 "
      "--model qwen3-30b-a3b \\\n    --batch-tokens 2097152 --batch 0 --json plan.json\n"
      "A window of gradient accumulation is one batch: all its tokens as --batch-tokens, what a "
      "rank "
      "holds\nin one pass as --token-budget.");
  plan->callback([&] { command = [&](Streams streams) { return run_plan(options, streams); }; });
}

void add_compare(CLI::App& app, Command& command, CompareCommand& options) {
  CLI::App* compare =
      app.add_subcommand("compare", "simulate every planner's plans for the same batches");
  add_planning(*compare, options.planning, "all that the compared planners may use");
  compare->add_option("--batch-tokens", options.batch_tokens, "tokens of a batch")->required();
  compare
      ->add_option("--batches", options.batches, "how many full batches, from the first, at most")
      ->capture_default_str();
  compare->add_option("--planners", options.planners, "names with commas between (default: all)")
      ->delimiter(',');
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
