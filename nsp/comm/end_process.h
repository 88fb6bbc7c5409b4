// How a watchdog ends a process whose thread may be in any library.
#pragma once

#include <memory>
#include <string>

#include "nsp/comm/communicator.h"
#include "nsp/comm/watchdog.h"

namespace nsp {

// The file that torchrun shows in its report, as torch.distributed.elastic's own error handler
// writes it. Does not throw.
void write_error_file(const std::string& path, const std::string& message);

// The message on stderr; if it is the first failure, also in `error_file` (see write_error_file;
// empty: none). Then the communicator is stopped, so that a thread in one of its exchanges comes
// back with an Error. If the process is there two seconds later it ends with code 1, without
// destructors. The communicator lives at least until it is stopped.
End end_process(std::shared_ptr<Communicator> communicator, std::string error_file);

}  // namespace nsp
