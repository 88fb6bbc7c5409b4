// Calls of `nsp plan` and `nsp compare` for the tiny model on the CPU profile.
#pragma once

#include <string>
#include <vector>

#include "nsp/base/json.h"
#include "tests/temporary.h"

namespace nsp {

using Arguments = std::vector<std::string>;

inline std::string file_with(const std::string& text) {
  const std::string path = temporary_path("file.txt");
  write_file(path, text);
  return path;
}

inline Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// World and sp_max are among `more`.
inline Arguments tiny(const std::string& command,
                      const std::string& lengths,
                      const Arguments& more) {
  return with(
      {command, "--lengths", file_with(lengths), "--model", "tiny", "--profile", "cpu-gloo"}, more);
}

// World and sp_max of 4.
inline Arguments tiny4(const std::string& command,
                       const std::string& lengths,
                       const Arguments& more) {
  return tiny(command, lengths, with({"--world", "4", "--sp-max", "4"}, more));
}

}  // namespace nsp
