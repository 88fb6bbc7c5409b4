#include "nsp/cli/output.h"

#include <filesystem>
#include <ostream>
#include <system_error>
#include <unistd.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::string text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

// A file that is not there is made in its folder, which must take it.
void check_writable(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") {
    return;
  }
  const std::filesystem::path file(path);
  std::error_code ignored;  // what cannot be looked at is not there
  if (std::filesystem::is_directory(file, ignored)) {
    bad_input(option, path, "is a folder; give the path of a file");
  }
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const bool writable = std::filesystem::exists(file, ignored)
                            ? access(path.c_str(), W_OK) == 0
                            : access(folder.c_str(), W_OK | X_OK) == 0;
  if (!writable) {
    bad_input(option, path, "cannot be written; give a file in a folder that exists and is yours");
  }
}

void write_result(const std::string& path,
                  const Json& json,
                  const std::string& table,
                  Streams streams) {
  if (path == "-") {
    streams.out << text(json);
    return;
  }
  if (!path.empty()) {
    write_file(path, text(json));
  }
  streams.out << table;
}

}  // namespace nsp
