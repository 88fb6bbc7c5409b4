// Profile nsp-profile/1: the seconds that one model shape needs on one cluster, measured or
// estimated.
//
// Attention law (of one pass), with n = ceil(tokens / 128) and heads = query heads on one rank:
//   work = entry (+ entry_grouped) + heads * (block(tokens) * n (n + 1) / 2 + row * n)
//   path = path_fixed + path_row * n            critical path of a launch's longest sequence
//   launch = launch_fixed + (W^3 + C^3)^(1/3)   W: sum of works, C: path of the longest
// "grouped" applies where a rank has more query heads than KV heads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/base/json.h"
#include "nsp/cluster/cluster.h"

namespace nsp {

// Seconds a head and 128x128 block for sequences of this many tokens; linear between points,
// constant before the first and after the last.
struct BlockPoint {
  std::int64_t tokens = 0;
  double seconds = 0;

  bool operator==(const BlockPoint&) const = default;
};

struct AttentionLaw {
  std::vector<BlockPoint> block;  // increasing tokens, at least one
  double row_seconds = 0;         // a head and 128 tokens
  double entry_seconds = 0;       // a sequence in a launch
  double entry_grouped_seconds = 0;
  double path_fixed_seconds = 0;
  double path_row_seconds = 0;  // 128 tokens
  double path_fixed_grouped_seconds = 0;
  double path_row_grouped_seconds = 0;
  double launch_seconds = 0;  // what a launch costs beside the law

  bool operator==(const AttentionLaw&) const = default;
};

// All of a decoder layer that works on tokens: projections, norms, MLP or experts.
struct DenseLaw {
  double fixed_seconds = 0;
  double token_seconds = 0;
  // Part of token_seconds that experts take; 0: not known, or no experts. Needed for expert
  // parallelism alone.
  double expert_token_seconds = 0;

  bool operator==(const DenseLaw&) const = default;
};

struct FsdpCost {
  double gather_bytes = 0;      // a layer's parameters, gathered once forward and once backward
  double scatter_bytes = 0;     // a layer's gradients
  double bytes_per_second = 0;  // a rank receives

  bool operator==(const FsdpCost&) const = default;
};

struct Profile {
  std::string model;
  std::string cluster;
  bool measured = false;   // compute measured for this model on this device; false: estimated
  std::string source;      // where the numbers come from, for people
  std::int64_t hosts = 0;  // that the cluster has; 0: any number
  std::int64_t ranks_per_host = 1;
  AttentionLaw attention_forward;
  AttentionLaw attention_backward;
  DenseLaw dense_forward;
  DenseLaw dense_backward;
  Link inside;
  Link between;
  FsdpCost fsdp;
  // Between a rank and its host's memory, one direction; 0: not known, so nothing is offloaded.
  double host_bytes_per_second = 0;
  // A value (output, gradient) merged with or added to another; as measured on an H200, unless
  // given.
  double merge_value_seconds = 1.43e-12;
  double lm_head_token_seconds = 0;        // forward, loss and backward
  double optimizer_parameter_seconds = 0;  // a parameter that the rank owns
  double parameters = 0;                   // of the whole model

  bool operator==(const Profile&) const = default;
};

// Throws BadInput that names the field unless every number is finite and >= 0, rates are positive,
// block points increase.
void check(const Profile& profile);

// Throws BadInput for more ranks than the cluster has.
void check_world(const Profile& profile, std::int32_t world);

Json to_json(const Profile& profile);
// Strict; the result is checked. `where` opens messages.
Profile profile_from_json(const Json& json, const std::string& where = "profile");

// XXH3-128 of the canonical JSON without what decides no cost: `source`, `hosts`, and
// host_bytes_per_second, which decides about `offload` marks alone.
std::string profile_hash(const Profile& profile);

// The profiles compiled into the library: frozen measurements, and the default run's machine.
const std::vector<Profile>& profile_presets();

}  // namespace nsp
