// A plan: every sequence of one optimizer step, placed on a node of the tree, in rounds.
// A plain value: planners write it; the simulator and the executor interpret it.
// It depends on lengths and settings alone, so every rank computes the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/plan/tree.h"

namespace nsp {

// How a node runs one sequence.
enum class Backend : std::uint8_t { kLocal, kUlysses, kGather, kRing, kUspRing, kUspGather };
// What activation checkpointing does with a placement's attention output. A row holds its
// placements in reverse order of these.
enum class Mark : std::uint8_t { kRecompute, kOffload, kSave, kSaveQkv };
enum class Phase : std::uint8_t { kPrologue, kCompute, kEpilogue };
// What of a level runs together: the short sequences of a level that is cut (Schedule::cuts), or
// its long ones; all of them where it is not cut.
enum class Wave : std::uint8_t { kLong, kShort };
enum class Transport : std::uint8_t { kCollective, kPeerCopy };

// Longest sequence: keeps rank * tokens far from overflow.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

struct Placement {
  std::int64_t sequence = 0;  // index in the batch
  std::int64_t tokens = 0;    // kept tokens, >= 1
  Node node;
  Backend backend = Backend::kLocal;
  std::int32_t ulysses_degree = 1;  // usp: inner size; ulysses: the degree; otherwise 1
  Mark mark = Mark::kRecompute;

  bool operator==(const Placement&) const = default;
};

// One entry of the issue order: a phase of one wave of a level. Degree 1 has the compute phase
// only; it stands for the leaf sequences that leaf_first leaves.
struct Issue {
  Phase phase = Phase::kCompute;
  std::int32_t degree = 1;
  Wave wave = Wave::kLong;

  bool operator==(const Issue&) const = default;
};

struct LevelTransport {
  std::int32_t degree = 1;
  Transport transport = Transport::kCollective;

  bool operator==(const LevelTransport&) const = default;
};

// Parts a level above 1 in two waves, each with exchanges and launches of its own: sequences of at
// most so many tokens are the short one. Both have sequences.
struct LevelCut {
  std::int32_t degree = 2;
  std::int64_t tokens = 0;

  bool operator==(const LevelCut&) const = default;
};

// Everything that execution depends on beside the placements; equal on all ranks.
struct Schedule {
  std::vector<Issue> order{};
  // By rank: so many of its leaf sequences, in row order, are a launch of their own at the head of
  // the compute queue, before anything in `order` (runs_first in layout.h); no exchange waits for
  // them.
  std::vector<std::int32_t> leaf_first{};
  std::vector<LevelTransport> transports{};
  std::vector<LevelCut> cuts{};  // root to leaf; levels that are not named run whole

  bool operator==(const Schedule&) const = default;
};

// One forward-backward pass. Placements stand in increasing order of sequence.
struct Round {
  std::vector<Placement> placements{};
  Schedule schedule{};

  bool operator==(const Round&) const = default;
};

struct Dropped {
  std::int64_t sequence = 0;
  std::int64_t tokens = 0;  // before
  std::int64_t kept = 0;    // after: 0 when skipped
  std::string why{};

  bool operator==(const Dropped&) const = default;
};

struct Predicted {
  double seconds = 0;   // the whole step
  double forward = 0;   // one layer, slowest rank, seconds
  double backward = 0;  // one layer, slowest rank, seconds
  std::int64_t tokens_max = 0;
  std::int64_t bytes_max = 0;  // saved attention output of one layer on the fullest rank

  bool operator==(const Predicted&) const = default;
};

struct Plan {
  std::int32_t world = 1;
  std::int32_t ranks_per_host = 1;
  std::int32_t sp_max = 1;
  std::int64_t token_budget = 0;  // most tokens a rank holds in a round
  std::string planner{};
  std::string effort{};
  bool feasible = true;  // false: a budget is exceeded; do not execute
  std::int64_t num_sequences = 0;
  std::int64_t num_tokens = 0;  // of all placements
  std::vector<Round> rounds{};
  std::vector<Dropped> dropped{};
  Predicted predicted{};
  double bound_seconds = 0;  // proven lower bound of predicted.forward + predicted.backward
  std::string model_hash{};
  std::string profile_hash{};
  std::string hash{};  // of the canonical JSON (plan_json.h)
  double planning_ms = 0;

  bool operator==(const Plan&) const = default;
};

}  // namespace nsp
