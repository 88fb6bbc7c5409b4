// Options of the subcommands, declared to CLI11. For cli.cpp and declare_simulation.cpp alone.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "nsp/cli/commands.h"

namespace nsp {

constexpr const char* kJsonHelp =
    "write JSON to this path; - for standard output, without the table";

using Command = std::function<int(Streams)>;  // set by the subcommand that was named

// The options stay where they are until the command has run.
void add_simulate(CLI::App& app, Command& command, SimulateCommand& options);
void add_compare(CLI::App& app, Command& command, CompareCommand& options);

}  // namespace nsp
