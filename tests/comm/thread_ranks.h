// Ranks as threads: a c10d backend inside one process, so that the code under test is the one that
// runs over gloo and NCCL.
#pragma once

#include <functional>
#include <string>

namespace nsp::test {

// Runs `body(rank, group_name)` on one thread a rank; a process group over all of them is
// registered under group_name, which differs by rank. Rethrows the first failure. A rank that fails
// ends the waits of all others, and so do exchanges that do not match: no test hangs.
void run_ranks(int world, const std::function<void(int rank, const std::string& group)>& body);

}  // namespace nsp::test
