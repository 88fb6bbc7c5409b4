// The hierarchical cost model (arXiv 2609.22755, section 4.1.2): sequence -> node -> rank -> step.
//
// Serial: no overlap. All costs are integer nanoseconds, so that every machine makes the same
// choices.
//   node   prologue + launch law over its sequences + epilogue; a collective's latency once a phase
//   rank   sum of the active nodes on its path + dense seconds of its tokens
//   load   largest forward + largest backward over the ranks, of one layer
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/cost/attention_cost.h"
#include "nsp/cost/node_sums.h"
#include "nsp/cost/profile.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// Degrees in 1, 2, 4, ... sp_max that the query heads divide by (what ulysses needs; KV heads may
// be any).
std::vector<std::int32_t> allowed_degrees(std::int64_t heads, std::int32_t sp_max);

class CostModel {
 public:
  // Borrows nothing. ranks_per_host decides which link a degree crosses. Both inputs are checked
  // values.
  CostModel(const ModelShape& shape, const Profile& profile, std::int32_t ranks_per_host);

  std::vector<std::int32_t> allowed_degrees(std::int32_t sp_max) const;

  // Throws BadInput for a way that the model's heads do not allow, or that has no cost yet.
  SequenceCost sequence(std::int64_t tokens, const Way& way) const;
  // local at degree 1, ulysses above.
  SequenceCost sequence(std::int64_t tokens, std::int32_t degree) const;
  // The three phases of an active node.
  PhaseCost phases(const Way& way, const NodeSums& sums) const;
  // What a node costs because it is active: two collectives and one launch a pass.
  Passes node_fixed(std::int32_t degree) const;
  // A node with these sums: work and traffic of all its sequences, path of the longest.
  Passes node(std::int32_t degree,
              const Passes& work,
              const Passes& path,
              const Passes& traffic) const;

  // Bytes one rank sends to others for one sequence: exchanges of q, k, v (prologue forward,
  // epilogue backward) and of the output (epilogue forward, prologue backward).
  std::int64_t qkv_bytes(std::int64_t tokens, std::int32_t degree) const;
  std::int64_t output_bytes(std::int64_t tokens, std::int32_t degree) const;

  // Dense part of a layer for a rank's tokens, rounded up, without the fixed part.
  Passes dense(std::int64_t tokens) const;
  // Dense part of a layer that every rank pays once a round.
  const Passes& dense_fixed() const { return dense_fixed_; }

  // The whole step from one round's largest forward and backward of a layer, nanoseconds: all
  // layers, FSDP traffic where compute is shorter, LM head for `tokens_max` tokens.
  std::int64_t round_step(const Passes& load, std::int64_t tokens_max, std::int32_t world) const;
  std::int64_t optimizer(std::int32_t world) const;

  // Bytes of one layer's attention output for a rank's tokens.
  std::int64_t attention_output_bytes(std::int64_t tokens) const;

 private:
  std::size_t level(std::int32_t degree) const;  // log2, checked
  std::int64_t sent_bytes(std::int64_t tokens, std::int32_t degree, std::int64_t heads) const;
  std::int64_t traffic(std::int64_t bytes, std::int32_t degree) const;

  ModelShape shape_;
  AttentionCost forward_;
  AttentionCost backward_;
  std::int32_t ranks_per_host_;
  std::vector<std::int64_t> kv_copies_;  // by level: KV heads over all ranks of a node
  Passes dense_token_;                   // picoseconds a token
  Passes dense_fixed_;
  std::int64_t link_bytes_per_second_[2];  // inside, between
  std::int64_t link_latency_[2];
  std::int64_t gather_ = 0;  // nanoseconds of one layer's gather in an endless world
  std::int64_t scatter_ = 0;
  std::int64_t lm_head_token_ = 0;  // picoseconds
  std::int64_t optimizer_ = 0;      // nanoseconds for all parameters on one rank
};

}  // namespace nsp
