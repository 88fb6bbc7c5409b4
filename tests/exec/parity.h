// One plan run by ranks as threads, against attention over whole sequences in float64. No torch
// here: the cases include this alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nsp/exec/heads.h"
#include "nsp/plan/plan.h"

namespace nsp::test {

enum class Type { kFloat64, kFloat32, kBfloat16 };

struct RunOptions {
  Heads heads;
  std::int64_t head_dim = 8;
  Type type = Type::kFloat64;
  // q, k, v and the gradient of out as views of (heads, T, head_dim) memory, as models pass them.
  bool strided = false;
  std::int64_t window = 0;
  // As inside a checkpointed layer: a first forward pass under a stash, then the one that counts.
  bool checkpointed = false;
  bool streaming = true;
  std::int32_t reach = 1;  // levels up to it go by peer copies
  std::int64_t fetch_nanoseconds = 0;
};

// Worst absolute difference over all rows of all ranks; counters of each rank, without those of the
// first forward pass of two.
struct Difference {
  double out = 0;
  double dq = 0;
  double dk = 0;
  double dv = 0;
  std::vector<std::int64_t> exchanges_forward;
  std::vector<std::int64_t> exchanges_backward;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> launches_forward;
  std::vector<std::int64_t> launches_backward;
  std::vector<std::int64_t> stash_bytes;  // after the first forward pass, and on the host
  std::vector<std::int64_t> stash_formula;
  std::int64_t arena_bytes = 0;  // of peer copies, on every rank
  std::string bits;              // of out, dq, dk and dv: a hash for each rank, in row order

  double worst() const;
};

// What the reference does otherwise than the plan: a planted fault.
struct Reference {
  std::vector<std::int64_t> lengths{};  // cuts the same tokens into other sequences
  std::optional<std::int64_t> window{};
};

// Values are drawn from a fixed seed. Only round 0 is run.
Difference run_plan(const Plan& plan, const RunOptions& options, const Reference& reference = {});

}  // namespace nsp::test
