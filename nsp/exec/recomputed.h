// The second program of a round whose placements are marked: what a checkpointed layer runs in its
// recomputed forward pass, and in the backward pass after it.
#pragma once

#include <memory>

#include "nsp/exec/program.h"

namespace nsp {

// Of `whole`, the round's program; shares the backends of levels that save nothing. Null when no
// placement of the round is saved by a backend that can. Equal on all ranks in the exchanges that
// it issues.
std::unique_ptr<ProgramRound> make_recomputed(World& world,
                                              const Round& round,
                                              const Heads& heads,
                                              const ProgramRound& whole);

}  // namespace nsp
