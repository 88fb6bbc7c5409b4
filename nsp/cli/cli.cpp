#include "nsp/cli/cli.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <ostream>

#include "nsp/base/error.h"
#include "nsp/cli/declare.h"

namespace nsp {
namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;
void add_plan(CLI::App& app, Command& command, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "plan one batch of a trace of lengths");
  plan->add_option("--lengths", options.lengths, "trace file: one length a line, .gz allowed")
      ->required();
  plan->add_option("--world", options.world, "number of ranks")->required();
  plan->add_option(
          "--sp-max", options.sp_max, "largest degree: a power of two that divides the world")
      ->required();
  plan->add_option("--model", options.model, "model preset (see nsp models) or JSON file")
      ->required();
  plan->add_option("--profile",
                   options.profile,
                   "cluster preset (see nsp clusters), profile or cluster file")
      ->capture_default_str();
  plan->add_option(
      "--ranks-per-host", options.ranks_per_host, "ranks of a host (default: the profile's)");
  plan->add_option("--max-length", options.max_length, "leave out longer sequences, tokens");
  plan->add_option(
      "--batch-tokens", options.batch_tokens, "tokens of a batch (default: the whole file)");
  plan->add_option("--batch", options.batch, "which full batch, from 0 (default 0)");
  plan->add_option("--token-budget",
                   options.token_budget,
                   "most tokens a rank holds in a round (default: 1.2 times the mean)");
  plan->add_option(
          "--planner",
          options.planner,
          "nsp, algorithm1, nsp-2l, megatron-dcp, static[:K], static-tokens[:K], static-usp[:K]")
      ->capture_default_str();
  plan->add_option("--effort", options.effort, "fast, default or thorough")->capture_default_str();
  plan->add_option("--over-length",
                   options.over_length,
                   "sequences that cannot fit: error, skip or truncate")
      ->capture_default_str();
  plan->add_option("--byte-budget",
                   options.byte_budget,
                   "bytes of attention output a rank may save of a layer, e.g. 512MiB (default 0: "
                   "recompute all)")
      ->transform(CLI::AsSizeValue(false));
  plan->add_option(
          "--mark-order", options.mark_order, "what is saved first: seconds-per-byte or tree")
      ->capture_default_str();
  plan->add_option(
          "--backends",
          options.backends,
          "what planner nsp may use: ulysses, gather, ring, usp-ring, usp-gather, usp, all")
      ->delimiter(',')
      ->capture_default_str();
  plan->add_option("--ep", options.ep, "ranks of an expert-parallel group, for the prediction")
      ->capture_default_str();
  plan->add_option("--json", options.json, kJsonHelp);
  plan->footer(
      "Example:\n  nsp plan --lengths lengths.txt --max-length 393216 --world 64 --sp-max 32 "
      "--model qwen3-30b-a3b \\\n    --batch-tokens 2097152 --batch 0 --json plan.json");
  plan->callback([&] { command = [&](Streams streams) { return run_plan(options, streams); }; });
}

void add_explain(CLI::App& app, Command& command, ExplainOptions& options) {
  CLI::App* explain = app.add_subcommand("explain", "say where each length class went and why");
  explain->add_option("plan", options.file.plan, "a plan file (nsp-plan/1)")->required();
  explain->add_option("--model",
                      options.model,
                      "the plan's model: adds bytes and seconds of saved attention output");
  explain->add_option("--profile", options.profile, "the plan's profile")->capture_default_str();
  explain->add_option("--json", options.file.json, kJsonHelp);
  explain->footer("Example:\n  nsp explain plan.json --model qwen3-30b-a3b");
  explain->callback(
      [&] { command = [&](Streams streams) { return run_explain(options, streams); }; });
}

using FileCommand = int (*)(const FileOptions&, Streams);
using ListCommand = int (*)(const std::string&, Streams);

void add_file_command(CLI::App& app,
                      Command& command,
                      FileOptions& options,
                      const std::string& name,
                      const std::string& about,
                      FileCommand run) {
  CLI::App* sub = app.add_subcommand(name, about);
  sub->add_option("plan", options.plan, "a plan file (nsp-plan/1)")->required();
  sub->add_option("--json", options.json, kJsonHelp);
  sub->footer("Example:\n  nsp " + name + " plan.json");
  sub->callback([&command, &options, run] {
    command = [&options, run](Streams streams) { return run(options, streams); };
  });
}

void add_list_command(CLI::App& app,
                      Command& command,
                      std::string& json,
                      const std::string& name,
                      const std::string& about,
                      ListCommand run) {
  CLI::App* sub = app.add_subcommand(name, about);
  sub->add_option("--json", json, kJsonHelp);
  sub->footer("Example:\n  nsp " + name + " --json -");
  sub->callback([&command, &json, run] {
    command = [&json, run](Streams streams) { return run(json, streams); };
  });
}

// CLI11 puts several lines into some messages; users get one sentence.
std::string one_line(std::string text) {
  for (char& c : text) {
    c = c == '\n' ? ' ' : c;
  }
  return text;
}

int parse_and_run(const std::vector<std::string>& arguments, Streams streams) {
  CLI::App app("Plans nested sequence parallelism: which ranks run each sequence of a batch.",
               "nsp");
  app.require_subcommand(0, 1);  // none is met below: an unknown word is then named
  app.set_version_flag("--version", "nsp " NSP_VERSION);
  app.footer(
      "Exit codes: 0 done, 1 no plan fits or a check failed, 2 bad input.\n"
      "Example:\n  nsp plan --help");
  Command command;
  PlanOptions plan;
  FileOptions file;
  SimulateCommand simulate;
  CompareCommand compare;
  std::string json;
  add_plan(app, command, plan);
  ExplainOptions explain;
  add_explain(app, command, explain);
  add_file_command(app, command, file, "check", "check a plan before any rank runs it", run_check);
  add_simulate(app, command, simulate);
  add_compare(app, command, compare);
  add_list_command(app, command, json, "models", "list the model presets", run_models);
  add_list_command(app, command, json, "clusters", "list the cluster presets", run_clusters);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(),
                                       arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::Success& success) {                   // --help, --version
    return app.exit(success, streams.out, streams.err);
  } catch (const CLI::ParseError& error) {
    streams.err << "nsp: " << one_line(error.what()) << "; see nsp --help\n";
    return kBadInput;
  }
  if (!command) {
    streams.err
        << "nsp: a subcommand is required: plan, explain, check, simulate, compare, models or "
           "clusters; see nsp --help\n";
    return kBadInput;
  }
  return command(streams);
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, Streams streams) {
  try {
    return parse_and_run(arguments, streams);
  } catch (const BadInput& error) {
    streams.err << "nsp: " << error.what() << "\n";
    return kBadInput;
  } catch (const std::exception& error) {
    streams.err << "nsp: " << error.what() << "\n";
    return kFailed;
  }
}

}  // namespace nsp
