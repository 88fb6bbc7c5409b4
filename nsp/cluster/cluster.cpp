#include "nsp/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "nsp/base/error.h"

namespace nsp {
namespace {

void check_positive(const std::string& field, double value) {
  if (!std::isfinite(value) || value <= 0) {
    throw BadInput(field + " " + Json(value).dump() + ": must be a number above 0");
  }
}

void check_link(const std::string& field, const Link& link) {
  check_positive(field + ".bytes_per_second", link.bytes_per_second);
  if (!std::isfinite(link.latency_seconds) || link.latency_seconds < 0) {
    throw BadInput(field + ".latency_seconds " + Json(link.latency_seconds).dump() +
                   ": must be a number of at least 0");
  }
}

Json to_json(const Link& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}};
}

Link link_from_json(const Json& json, const std::string& where) {
  const JsonReader in(json, where, {"bytes_per_second", "latency_seconds"});
  return {.bytes_per_second = in.number("bytes_per_second"),
          .latency_seconds = in.number("latency_seconds")};
}

ComputeRates rates_from_json(const Json& json, const std::string& where) {
  const JsonReader in(json, where, {"attention_forward", "attention_backward", "dense"});
  return {.attention_forward = in.number("attention_forward"),
          .attention_backward = in.number("attention_backward"),
          .dense = in.number("dense")};
}

}  // namespace

Cluster find_cluster(const std::string& name_or_path) {
  std::string names;
  for (const Cluster& preset : cluster_presets()) {
    if (preset.name == name_or_path) {
      return preset;
    }
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  if (!std::filesystem::exists(name_or_path)) {
    bad_input("cluster", "'" + name_or_path + "'", "must be one of " + names + ", or a JSON file");
  }
  return cluster_from_json(load_json(name_or_path), name_or_path);
}

void check(const Cluster& cluster) {
  if (cluster.device != "gpu" && cluster.device != "cpu") {
    bad_input("cluster.device", "'" + cluster.device + "'", "must be gpu or cpu");
  }
  if (cluster.hosts < 0) {
    bad_input("cluster.hosts", cluster.hosts, "must be at least 0 (0: any number)");
  }
  constexpr std::int64_t kMostRanks = 1 << 20;
  if (cluster.ranks_per_host < 1 || cluster.ranks_per_host > kMostRanks) {
    bad_input("cluster.ranks_per_host", cluster.ranks_per_host, "must be from 1 to 1048576");
  }
  if (cluster.gpu_memory_bytes < 1) {
    bad_input("cluster.gpu_memory_bytes", cluster.gpu_memory_bytes, "must be at least 1");
  }
  check_link("cluster.inside", cluster.inside);
  check_link("cluster.between", cluster.between);
  const ComputeRates& rates = cluster.flops_per_second;
  check_positive("cluster.flops_per_second.attention_forward", rates.attention_forward);
  check_positive("cluster.flops_per_second.attention_backward", rates.attention_backward);
  check_positive("cluster.flops_per_second.dense", rates.dense);
  if (cluster.host_bytes_per_second != 0) {
    check_positive("cluster.host_bytes_per_second", cluster.host_bytes_per_second);
  }
}

Json to_json(const Cluster& cluster) {
  const ComputeRates& rates = cluster.flops_per_second;
  Json json = {{"name", cluster.name},
               {"device", cluster.device},
               {"hosts", cluster.hosts},
               {"ranks_per_host", cluster.ranks_per_host},
               {"inside", to_json(cluster.inside)},
               {"between", to_json(cluster.between)},
               {"gpu_memory_bytes", cluster.gpu_memory_bytes},
               {"flops_per_second",
                {{"attention_forward", rates.attention_forward},
                 {"attention_backward", rates.attention_backward},
                 {"dense", rates.dense}}}};
  if (cluster.host_bytes_per_second > 0) {
    json["host_bytes_per_second"] = cluster.host_bytes_per_second;
  }
  return json;
}

Cluster cluster_from_json(const Json& json, const std::string& where) {
  const JsonReader in(json,
                      where,
                      {"name",
                       "device",
                       "hosts",
                       "ranks_per_host",
                       "inside",
                       "between",
                       "gpu_memory_bytes",
                       "flops_per_second",
                       "host_bytes_per_second"});
  Cluster cluster{
      .name = in.text("name"),
      .device = in.text("device"),
      .hosts = in.integer("hosts"),
      .ranks_per_host = in.integer("ranks_per_host"),
      .inside = link_from_json(in.at("inside"), in.where("inside")),
      .between = link_from_json(in.at("between"), in.where("between")),
      .gpu_memory_bytes = in.integer("gpu_memory_bytes"),
      .flops_per_second = rates_from_json(in.at("flops_per_second"), in.where("flops_per_second"))};
  if (in.has("host_bytes_per_second")) {
    cluster.host_bytes_per_second = in.number("host_bytes_per_second");
  }
  check(cluster);
  return cluster;
}

}  // namespace nsp
