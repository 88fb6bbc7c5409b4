// A model and a profile with round numbers, so that costs can be worked out by hand.
#pragma once

#include "nsp/cost/profile.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// 4 query heads, 2 KV heads of 1 value of 1 byte.
inline ModelShape simple_model() {
  return {.name = "simple",
          .layers = 10,
          .hidden = 4,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 1,
          .intermediate = 4,
          .vocabulary = 8,
          .bytes_per_value = 1};
}

// Work: 1 microsecond a head and block forward, 2 backward. Dense: 1 and 2 nanoseconds a token.
// Links: 1 and 0.1 GB/s, 5 and 50 nanoseconds a collective. No critical path.
inline Profile simple_profile() {
  Profile profile;
  profile.model = "simple";
  profile.cluster = "simple";
  profile.ranks_per_host = 2;
  profile.attention_forward.block = {{.tokens = 1, .seconds = 1e-6}};
  profile.attention_backward.block = {{.tokens = 1, .seconds = 2e-6}};
  profile.dense_forward = {.fixed_seconds = 0, .token_seconds = 1e-9};
  profile.dense_backward = {.fixed_seconds = 0, .token_seconds = 2e-9};
  profile.inside = {.bytes_per_second = 1e9, .latency_seconds = 5e-9};
  profile.between = {.bytes_per_second = 1e8, .latency_seconds = 50e-9};
  profile.fsdp.bytes_per_second = 1e9;
  return profile;
}

}  // namespace nsp
