// Recompute marks (arXiv 2609.22755, tree-level recomputation): which placements keep their
// attention output from forward to backward, under a byte budget of the device and one of the host.
//
// With activation checkpointing a decoder layer's forward runs twice. A placement marked `save`
// keeps the output and log-sum-exp of the tokens each rank owns, so the second run skips its
// attention. Placements are taken in one order, each if it fits on every rank of its node beside
// what was taken before. A mark stands in the placement, so it is equal on all ranks. Rounds run
// one after another: each has the whole budget.
//
// What does not fit is marked `offload` where the host has room for it and its copies hide behind a
// layer's computation (hidden_bytes in room.h), most seconds for a byte first: recomputing costs
// time there and copying none. Its log-sum-exp stays on the device, beside the budget: 1/65 of a
// saved token at 128 values of 2 bytes a head.
//
// `save_qkv` (q, k and v kept in head layout as well) is never written here: no executor asks yet.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"

namespace nsp {

enum class MarkOrder : std::uint8_t {
  kTree,           // the paper's: root to leaf, in a node the dearest recompute first
  kSecondsPerByte  // over all nodes, most seconds of forward attention for a saved byte first
};

struct MarkRule {
  std::int64_t byte_budget = 0;   // most bytes a rank keeps of one layer on the device
  std::int64_t token_bytes = 1;   // saved_token_bytes(shape)
  std::int64_t host_budget = 0;   // most bytes a rank keeps of one layer on its host
  std::int64_t output_bytes = 1;  // output_token_bytes(shape)
  MarkOrder order = MarkOrder::kSecondsPerByte;
};

// Bytes of one token's saved attention output and log-sum-exp (a float a head) in one layer.
std::int64_t saved_token_bytes(const ModelShape& shape);

// The output alone, which is what goes to the host.
std::int64_t output_token_bytes(const ModelShape& shape);

// Sets the mark of every placement to save, offload or recompute, and seals the plan.
// Deterministic.
void mark_recompute(Plan& plan, const CostModel& model, const MarkRule& rule);

// Bytes of saved output that each rank keeps of one layer on the device: of its fullest round.
std::vector<std::int64_t> saved_bytes(const Plan& plan, std::int64_t token_bytes);
// The same of its host, for what is offloaded.
std::vector<std::int64_t> offloaded_bytes(const Plan& plan, std::int64_t output_bytes);

// What the marks of one level keep, and what they spare.
struct LevelSaved {
  std::int32_t degree = 1;
  std::int64_t sequences = 0;
  std::int64_t saved = 0;      // sequences that are not recomputed
  std::int64_t offloaded = 0;  // part of them: on the host
  std::int64_t bytes_max = 0;  // kept of one layer by the level, on its fullest device and round
  double seconds = 0;          // forward attention of one layer, mean of all ranks
  double seconds_saved = 0;    // part of it that is not run again
};

// Root to leaf; levels that some placement uses.
std::vector<LevelSaved> saved_by_level(const Plan& plan,
                                       const CostModel& model,
                                       std::int64_t token_bytes);

}  // namespace nsp
