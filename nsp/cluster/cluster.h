// A cluster: hosts with equal devices, one link class inside a host and one between hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/base/json.h"

namespace nsp {

struct Link {
  double bytes_per_second = 0;  // a rank, one direction
  double latency_seconds = 0;   // fixed cost of one collective

  bool operator==(const Link&) const = default;
};

// Rates that kernels reach, not peaks. Attention counts 2 L^2 heads head_dim FLOP forward for a
// causal sequence of L tokens, 2.5 times that backward.
struct ComputeRates {
  double attention_forward = 0;   // FLOP a second
  double attention_backward = 0;  // FLOP a second
  double dense = 0;               // FLOP a second of large matrix products

  bool operator==(const ComputeRates&) const = default;
};

struct Cluster {
  std::string name;
  std::string device;      // "gpu" or "cpu": which measurements estimates start from
  std::int64_t hosts = 0;  // 0: any number
  std::int64_t ranks_per_host = 1;
  Link inside;
  Link between;
  std::int64_t gpu_memory_bytes = 0;
  ComputeRates flops_per_second;
  // Between a rank and its host's memory, one direction, while all ranks of the host copy; 0: not
  // known.
  double host_bytes_per_second = 0;

  bool operator==(const Cluster&) const = default;
};

// h200, h800, a100, slow, two-h200, cpu-gloo.
const std::vector<Cluster>& cluster_presets();

// A preset's name, or the path of a JSON file with these fields. Throws BadInput that lists the
// presets.
Cluster find_cluster(const std::string& name_or_path);

// Throws BadInput that names the field and what is allowed.
void check(const Cluster& cluster);

Json to_json(const Cluster& cluster);
// Strict: unknown or missing fields and wrong types are BadInput. The result is checked.
Cluster cluster_from_json(const Json& json, const std::string& where = "cluster");

}  // namespace nsp
