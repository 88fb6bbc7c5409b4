// A plan compiled for one rank: what the attention operator walks, once a layer, without looking at
// the plan again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nsp/attention/attention.h"
#include "nsp/comm/communicator.h"
#include "nsp/comm/progress.h"
#include "nsp/comm/watchdog.h"
#include "nsp/exec/backend.h"
#include "nsp/exec/heads.h"
#include "nsp/exec/offload.h"
#include "nsp/plan/plan.h"

namespace nsp {

// Bytes that stashes hold now, and the most since the counters were reset.
struct StashBytes {
  std::atomic<std::int64_t> held = 0;
  std::atomic<std::int64_t> most = 0;

  void add(std::int64_t bytes);
};

// What the programs of one model share. Counters run over its life; reset them between
// measurements.
struct World {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<AttentionKernel> attention;
  std::unique_ptr<Watchdog> watchdog{};  // none: waits are the process group's to end
  // Off: the exchanges of a level beside nothing, a level after the other, whatever the issue
  // order; equal on all ranks. The numbers are the same.
  std::atomic<bool> streaming = true;
  std::atomic<std::int64_t> attention_calls = 0;  // forward passes of the operator
  StashBytes stash{};                             // on the device
  StashBytes offloaded{};                         // on the host
  Offload offload{};

  void reset_counters();
};

// The stages of a pass are the phases of its blocks, and then to finish them.
constexpr Stage stage_of(Phase phase) {
  return static_cast<Stage>(phase);
}
static_assert(stage_of(Phase::kPrologue) == Stage::kPrologue);
static_assert(stage_of(Phase::kCompute) == Stage::kCompute);
static_assert(stage_of(Phase::kEpilogue) == Stage::kEpilogue);

// One phase of one block, in issue order.
struct Step {
  Phase phase = Phase::kCompute;
  std::size_t block = 0;
  // What a profiler shows: "nsp d4 ulysses prologue fwd"; "nsp d4 ulysses short prologue fwd" of
  // the short wave of a level that is cut.
  std::string forward_range{};
  std::string backward_range{};
};

struct ProgramRound {
  std::int64_t tokens = 0;          // rows of this rank, dummy token included
  std::int64_t longest_zigzag = 0;  // sequence of gather, ring or usp on any rank: their windows
  // Exchanged levels root to leaf, each by backend, of that the short wave before the long one;
  // then the leaf, then the part of it that runs first, if any.
  std::vector<std::shared_ptr<LevelBackend>> blocks{};
  std::vector<Step> steps{};  // equal on all ranks but for the first leaf part

  // What runs instead in the recomputed forward pass of a checkpointed layer and in its backward,
  // and, by block, what is saved for it; none where no placement of the round is marked.
  std::unique_ptr<ProgramRound> recomputed{};
  std::vector<Parts> parts{};  // of a recomputed round
};

// Immutable but for its counter; safe to share between threads.
class Program {
 public:
  // Reads and checks the plan (JSON, nsp-plan/1). Throws BadInput when it is malformed, breaks a
  // rule, is not feasible, is for another world size, needs what the executor does not have, or
  // splits heads by a degree that does not divide them.
  Program(std::shared_ptr<World> world, std::string_view plan_json, const Heads& heads);

  World& world() const { return *world_; }
  const Heads& heads() const { return heads_; }
  std::int64_t num_rounds() const { return static_cast<std::int64_t>(rounds_.size()); }
  // Throws BadInput when there is no such round.
  const ProgramRound& round(std::int64_t index) const;

  std::atomic<std::int64_t> attention_calls = 0;  // forward passes over this plan

 private:
  std::shared_ptr<World> world_;
  Heads heads_;
  std::vector<ProgramRound> rounds_;
};

// Handles by which the operator's integer argument finds its program; thread-safe. A backward pass
// that is under way keeps its program alive after the handle is released.
std::int64_t add_program(std::shared_ptr<Program> program);
// Throws BadInput for an unknown or released handle.
std::shared_ptr<Program> find_program(std::int64_t handle);
void release_program(std::int64_t handle);

}  // namespace nsp
