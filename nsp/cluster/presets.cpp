#include "nsp/cluster/cluster.h"

namespace nsp {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Measured on two H200 of one host: NCCL all-to-all 280 GB/s with a 60 microsecond floor; attention
// saturates at 565 / 505 TFLOP/s, an 8192^3 bf16 product at 782. Assumed: between hosts 400 Gbit/s;
// to and from host memory what 16 lanes of PCIe 5 reach (bench/recompute.py measures it).
Cluster h200() {
  return {.name = "h200",
          .device = "gpu",
          .hosts = 0,
          .ranks_per_host = 8,
          .inside = {.bytes_per_second = 280e9, .latency_seconds = 60e-6},
          .between = {.bytes_per_second = 42e9, .latency_seconds = 100e-6},
          .gpu_memory_bytes = 141 * kGiB,
          .flops_per_second = {.attention_forward = 565e12,
                               .attention_backward = 505e12,
                               .dense = 782e12},
          .host_bytes_per_second = 50e9};
}

Cluster h800() {
  Cluster cluster = h200();
  cluster.name = "h800";
  cluster.inside.bytes_per_second = 170e9;
  cluster.gpu_memory_bytes = 80 * kGiB;
  ComputeRates& rates = cluster.flops_per_second;
  rates = {.attention_forward = 0.9 * rates.attention_forward,
           .attention_backward = 0.9 * rates.attention_backward,
           .dense = 0.9 * rates.dense};
  return cluster;
}

Cluster a100() {
  Cluster cluster = h200();
  cluster.name = "a100";
  cluster.inside.bytes_per_second = 220e9;
  cluster.between.bytes_per_second = 21e9;
  cluster.gpu_memory_bytes = 80 * kGiB;
  cluster.flops_per_second = {
      .attention_forward = 190e12, .attention_backward = 170e12, .dense = 220e12};
  cluster.host_bytes_per_second = 25e9;  // PCIe 4
  return cluster;
}

Cluster slow() {
  Cluster cluster = h200();
  cluster.name = "slow";
  cluster.between.bytes_per_second = 10e9;
  return cluster;
}

Cluster two_h200() {
  Cluster cluster = h200();
  cluster.name = "two-h200";
  cluster.hosts = 1;
  cluster.ranks_per_host = 2;
  return cluster;
}

// Processes that share the cores of one machine and talk through gloo on the loopback device. The
// link includes packing and ordering rows, as tools/measure_cpu.py measures it. Any number of them
// may run, and processes of several machines are not told apart.
Cluster cpu_gloo() {
  const Link loopback = {.bytes_per_second = 0.35e9, .latency_seconds = 1.2e-3};
  return {
      .name = "cpu-gloo",
      .device = "cpu",
      .hosts = 0,
      .ranks_per_host = 8,
      .inside = loopback,
      .between = loopback,
      .gpu_memory_bytes = 4 * kGiB,
      .flops_per_second = {.attention_forward = 44e9, .attention_backward = 48e9, .dense = 20e9}};
}

}  // namespace

const std::vector<Cluster>& cluster_presets() {
  static const std::vector<Cluster> presets = {
      h200(), h800(), a100(), slow(), two_h200(), cpu_gloo()};
  return presets;
}

}  // namespace nsp
