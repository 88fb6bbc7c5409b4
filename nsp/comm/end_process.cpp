#include "nsp/comm/end_process.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>
#include <unistd.h>
#include <utility>

#include "nsp/base/json.h"

namespace nsp {
namespace {

constexpr std::chrono::seconds kGrace{2};

}  // namespace

void write_error_file(const std::string& path, const std::string& message) {
  try {
    const Json extra = {{"py_callstack", message},
                        {"timestamp", std::to_string(std::time(nullptr))}};
    write_file(path, Json{{"message", {{"message", message}, {"extraInfo", extra}}}}.dump());
  } catch (const std::exception&) {  // the message is on stderr too
  }
}

// A thread of its own stops the communicator: aborting one may itself wait for a device. It shares
// the communicator, since the model's thread may meanwhile have let go of it.
End end_process(std::shared_ptr<Communicator> communicator, std::string error_file) {
  return [communicator = std::move(communicator), error_file = std::move(error_file)](
             const std::string& message, bool first) {
    std::fprintf(stderr, "nsp: %s\n", message.c_str());
    std::fflush(stderr);
    if (first && !error_file.empty()) {
      write_error_file(error_file, message);
    }
    std::thread([communicator] { communicator->stop(); }).detach();
    std::thread([] {
      std::this_thread::sleep_for(kGrace);
      _exit(1);
    }).detach();
  };
}

}  // namespace nsp
