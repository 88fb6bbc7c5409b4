// Where the result of a command goes: a table for people, JSON for programs.
#pragma once

#include <string>

#include "nsp/base/json.h"
#include "nsp/cli/commands.h"

namespace nsp {

// `path` empty: the table. "-": JSON to streams.out instead. Otherwise JSON to the file and the
// table.
void write_result(const std::string& path,
                  const Json& json,
                  const std::string& table,
                  Streams streams);

}  // namespace nsp
