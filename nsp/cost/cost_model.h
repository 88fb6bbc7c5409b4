// The hierarchical cost model (arXiv 2609.22755, section 4.1.2): sequence -> node -> rank -> step.
//
// Serial: no overlap. All costs are integer nanoseconds, so that every machine makes the same
// choices.
//   node   prologue + launch law over its sequences + epilogue; a collective's latency once a phase
//   rank   sum of the active nodes on its path + dense seconds of its tokens
//          with expert parallelism: dense seconds before the exchange of its own tokens, experts'
//          of the mean tokens of its group
//   load   largest forward + largest backward over the ranks, of one layer
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nsp/cost/attention_cost.h"
#include "nsp/cost/exact.h"
#include "nsp/cost/node_sums.h"
#include "nsp/cost/profile.h"
#include "nsp/plan/tree.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// Degrees in 1, 2, 4, ... sp_max that the query heads divide by (what ulysses needs; KV heads may
// be any).
std::vector<std::int32_t> allowed_degrees(std::int64_t heads, std::int32_t sp_max);

class CostModel {
 public:
  // Borrows nothing. ranks_per_host decides which link a degree crosses. Both inputs are checked
  // values. `ep`: ranks of an expert-parallel group, consecutive; it must divide every world that
  // is evaluated. Throws BadInput when ep > 1 and the profile does not know the experts' seconds.
  CostModel(const ModelShape& shape,
            const Profile& profile,
            std::int32_t ranks_per_host,
            std::int32_t ep = 1);

  std::int32_t ep() const { return ep_; }

  std::vector<std::int32_t> allowed_degrees(std::int32_t sp_max) const;
  // local and the ways of these backends (way.h), for this model's heads and hosts.
  std::vector<Way> allowed_ways(std::int32_t sp_max, std::span<const Backend> backends) const;

  // Throws BadInput for a way that the model's heads do not allow.
  SequenceCost sequence(std::int64_t tokens, const Way& way) const;
  // local at degree 1, ulysses above.
  SequenceCost sequence(std::int64_t tokens, std::int32_t degree) const;
  // What a node of this way costs because it is active, and how it launches.
  WayFixed way_fixed(const Way& way) const;
  // The three phases of an active node.
  PhaseCost phases(const Way& way, const NodeSums& sums) const;

  // Dense part of a layer for a rank's tokens, rounded up, without the fixed part.
  Passes dense(std::int64_t tokens) const;
  // The same split at the expert exchange, which waits in every layer for the last rank of a group
  // of `ep`: what stands before it, for a rank's tokens; and each rank's experts for the tokens of
  // its whole group, dealt evenly (balanced routing). Of one group the slowest rank counts; since
  // the experts' part is the same for all of its ranks, the largest over all ranks of attention +
  // dense_before + experts is the largest over the groups.
  Passes dense_before(std::int64_t tokens) const;
  Passes experts(std::int64_t group_tokens) const;
  // Dense part of a layer that every rank pays once a round.
  const Passes& dense_fixed() const { return dense_fixed_; }

  // The whole step from one round's largest forward and backward of a layer, nanoseconds: all
  // layers, FSDP traffic where compute is shorter, LM head for `tokens_max` tokens.
  std::int64_t round_step(const Passes& load, std::int64_t tokens_max, std::int32_t world) const;
  std::int64_t optimizer(std::int32_t world) const;
  // One layer's parameters gathered, its gradients scattered, over the world.
  std::int64_t gather(std::int32_t world) const { return gather_ / world * (world - 1); }
  std::int64_t scatter(std::int32_t world) const { return scatter_ / world * (world - 1); }
  // Bytes that a rank copies to or from its host's memory in so many nanoseconds; 0 where the
  // profile does not know.
  std::int64_t host_bytes(std::int64_t nanoseconds) const;
  // Forward, loss and backward of the LM head for a rank's tokens.
  std::int64_t lm_head(std::int64_t tokens) const;

 private:
  std::size_t level(std::int32_t degree) const;  // log2, checked
  std::size_t link(std::int32_t degree) const {
    return inside_host(degree, ranks_per_host_) ? 0 : 1;
  }
  // Bytes that one rank sends to others for one sequence when these heads go to its inner ranks.
  std::int64_t sent_bytes(std::int64_t tokens, const Way& way, std::int64_t heads) const;
  Passes kv_seconds(std::int64_t tokens, const Way& way, Passes bytes_per_value) const;
  std::int64_t merge_seconds(Wide values) const;
  SequenceCost split_heads(std::int64_t tokens, const Way& way) const;
  void add_gather(std::int64_t tokens, const Way& way, SequenceCost& cost) const;
  void add_ring(std::int64_t tokens, const Way& way, SequenceCost& cost) const;
  std::int64_t traffic(Wide bytes, std::size_t link) const;

  ModelShape shape_;
  AttentionCost forward_;
  AttentionCost backward_;
  std::int32_t ranks_per_host_;
  std::int32_t ep_;
  std::vector<std::int64_t> kv_copies_;  // by level: KV heads over all ranks of a node
  Passes dense_token_;                   // picoseconds a token
  Passes expert_token_;                  // part of it
  Passes dense_fixed_;
  std::int64_t link_bytes_per_second_[2];  // inside, between
  std::int64_t link_latency_[2];
  std::int64_t merge_value_ = 0;            // femtoseconds
  std::int64_t host_bytes_per_second_ = 0;  // 0: not known
  std::int64_t gather_ = 0;                 // nanoseconds of one layer's gather in an endless world
  std::int64_t scatter_ = 0;
  std::int64_t lm_head_token_ = 0;  // picoseconds
  std::int64_t optimizer_ = 0;      // nanoseconds for all parameters on one rank
};

}  // namespace nsp
