#include "nsp/cli/cli.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <ostream>

#include "nsp/cli/declare.h"

namespace nsp {
namespace {

constexpr int kRefused = 2;  // 1 is an answer: no plan fits, a check failed

using ListCommand = int (*)(const std::string&, Streams);

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
      "Exit codes: 0 done, 1 no plan fits or a check failed, 2 bad input or a file that cannot be "
      "written.\n"
      "Example:\n  nsp plan --help");
  Command command;
  PlanOptions plan;
  ExplainOptions explain;
  FileOptions check;
  SimulateCommand simulate;
  CompareCommand compare;
  std::string json;
  add_plan(app, command, plan);
  add_explain(app, command, explain);
  add_check(app, command, check);
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
    return kRefused;
  }
  if (!command) {
    streams.err
        << "nsp: a subcommand is required: plan, explain, check, simulate, compare, models or "
           "clusters; see nsp --help\n";
    return kRefused;
  }
  return command(streams);
}

int run_caught(const std::vector<std::string>& arguments, Streams streams) {
  try {
    return parse_and_run(arguments, streams);
  } catch (const std::exception& error) {
    streams.err << "nsp: " << error.what() << "\n";
    return kRefused;
  }
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, Streams streams) {
  const int code = run_caught(arguments, streams);
  if (!streams.out.flush()) {
    streams.err << "nsp: standard output cannot be written; the result is not complete\n";
    return kRefused;
  }
  return code;
}

}  // namespace nsp
