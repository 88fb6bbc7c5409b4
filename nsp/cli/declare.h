// Options of the subcommands, declared to CLI11. For cli.cpp and declare_*.cpp alone.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "nsp/cli/commands.h"

namespace nsp {

constexpr const char* kJsonHelp =
    "write JSON to this path; - for standard output, without the table";
constexpr const char* kProfileHelp = "cluster preset (see nsp clusters), profile or cluster file";
constexpr const char* kCheckpointHelp =
    "run again in backward: none, full (whole layers), or marks (all but the attention of saved "
    "placements)";

using Command = std::function<int(Streams)>;  // set by the subcommand that was named

// The options stay where they are until the command has run.

// declare_planning.cpp
void add_plan(CLI::App& app, Command& command, PlanOptions& options);
void add_compare(CLI::App& app, Command& command, CompareCommand& options);

// declare_plan_file.cpp
void add_explain(CLI::App& app, Command& command, ExplainOptions& options);
void add_check(CLI::App& app, Command& command, FileOptions& options);
void add_simulate(CLI::App& app, Command& command, SimulateCommand& options);

}  // namespace nsp
