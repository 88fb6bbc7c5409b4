#include <fmt/format.h>
#include <iterator>

#include "nsp/cli/output.h"
#include "nsp/cluster/cluster.h"

namespace nsp {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

}  // namespace

int run_clusters(const std::string& json, Streams streams) {
  Json list = Json::array();
  std::string table = fmt::format("{:<10} {:>5} {:>10} {:>12} {:>13} {:>10} {:>26} {:>14}\n",
                                  "cluster",
                                  "hosts",
                                  "ranks/host",
                                  "GB/s inside",
                                  "GB/s between",
                                  "memory GiB",
                                  "attention fwd/bwd TFLOP/s",
                                  "dense TFLOP/s");
  for (const Cluster& c : cluster_presets()) {
    list.push_back(to_json(c));
    const ComputeRates& rates = c.flops_per_second;
    fmt::format_to(
        std::back_inserter(table),
        "{:<10} {:>5} {:>10} {:>12.4g} {:>13.4g} {:>10.4g} {:>26} {:>14.4g}\n",
        c.name,
        c.hosts == 0 ? "any" : std::to_string(c.hosts),
        c.ranks_per_host,
        c.inside.bytes_per_second / kGiga,
        c.between.bytes_per_second / kGiga,
        static_cast<double>(c.gpu_memory_bytes) / kGiB,
        fmt::format(
            "{:.3g} / {:.3g}", rates.attention_forward / kTera, rates.attention_backward / kTera),
        rates.dense / kTera);
  }
  write_result(json, list, table, streams);
  return 0;
}

}  // namespace nsp
