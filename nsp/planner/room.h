// Tokens whose attention output each rank of a round may still keep, on the device or on the host.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/plan/plan.h"

namespace nsp {

class Room {
 public:
  explicit Room(std::vector<std::int64_t> tokens_by_rank) : tokens_(std::move(tokens_by_rank)) {}

  // Takes what each rank of the node owns of the placement; nothing, and false, if it does not fit
  // on every one.
  bool take(const Placement& placement);

 private:
  std::int64_t& of(std::int32_t rank) { return tokens_[static_cast<std::size_t>(rank)]; }

  std::vector<std::int64_t> tokens_;
};

// What each rank's link copies to host memory behind a layer's forward pass: while its attention
// and its dense part compute, exchanges not counted. Copies back have the second forward pass and
// the backward pass of a layer to hide behind, which take longer.
std::vector<std::int64_t> hidden_bytes(const Round& round,
                                       std::int32_t world,
                                       const CostModel& model);

}  // namespace nsp
