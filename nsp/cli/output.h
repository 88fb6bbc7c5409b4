// Where the result of a command goes: a table for people, JSON for programs.
#pragma once

#include <string>

#include "nsp/base/json.h"
#include "nsp/cli/commands.h"

namespace nsp {

// Throws BadInput where no file can be written at the path of `option`, before the work that it
// would be for. Touches nothing. Empty and "-" pass.
void check_writable(const std::string& option, const std::string& path);

// `path` empty: the table. "-": JSON to streams.out instead. Otherwise JSON to the file and the
// table.
// Bytes of a path that are not UTF-8 become replacement characters in JSON.
void write_result(const std::string& path,
                  const Json& json,
                  const std::string& table,
                  Streams streams);

}  // namespace nsp
