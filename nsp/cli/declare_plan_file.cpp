// Commands that read one plan file.
#include "nsp/cli/declare.h"

namespace nsp {
namespace {

constexpr const char* kPlanHelp = "a plan file (nsp-plan/1)";

}  // namespace

void add_explain(CLI::App& app, Command& command, ExplainOptions& options) {
  CLI::App* explain = app.add_subcommand("explain", "say where each length class went and why");
  explain->add_option("plan", options.file.plan, kPlanHelp)->required();
  CLI::Option* model =
      explain->add_option("--model",
                          options.model,
                          "the plan's model: adds bytes and seconds of saved attention output");
  explain->add_option("--profile", options.profile, "the plan's profile, for --model")
      ->needs(model)
      ->capture_default_str();
  explain->add_option("--json", options.file.json, kJsonHelp);
  explain->footer("Example:\n  nsp explain plan.json --model qwen3-30b-a3b");
  explain->callback(
      [&] { command = [&](Streams streams) { return run_explain(options, streams); }; });
}

void add_check(CLI::App& app, Command& command, FileOptions& options) {
  CLI::App* check = app.add_subcommand("check", "check a plan before any rank runs it");
  check->add_option("plan", options.plan, kPlanHelp)->required();
  check->add_option("--json", options.json, kJsonHelp);
  check->footer("Example:\n  nsp check plan.json");
  check->callback([&] { command = [&](Streams streams) { return run_check(options, streams); }; });
}

void add_simulate(CLI::App& app, Command& command, SimulateCommand& options) {
  CLI::App* simulate =
      app.add_subcommand("simulate", "play a plan's step: seconds, where they go, memory, trace");
  simulate->add_option("plan", options.plan, kPlanHelp)->required();
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

}  // namespace nsp
