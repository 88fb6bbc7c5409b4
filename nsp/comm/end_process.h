// How a watchdog ends a process whose thread may be in any library.
#pragma once

#include <string>

#include "nsp/comm/watchdog.h"

namespace nsp {

// The message on stderr; if it is the first failure, also in `error_file` (the file that torchrun
// shows in its report; empty: none). Then the communicator is stopped, so that a thread in one of
// its exchanges comes back with an Error. If the process is there two seconds later it ends with
// code 1, without destructors. The communicator outlives the process.
End end_process(Communicator& communicator, std::string error_file);

}  // namespace nsp
