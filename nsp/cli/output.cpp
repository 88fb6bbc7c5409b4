#include "nsp/cli/output.h"

#include <ostream>

namespace nsp {

void write_result(const std::string& path,
                  const Json& json,
                  const std::string& table,
                  Streams streams) {
  if (path == "-") {
    streams.out << json.dump(2) << "\n";
    return;
  }
  if (!path.empty()) {
    write_file(path, json.dump(2) + "\n");
  }
  streams.out << table;
}

}  // namespace nsp
