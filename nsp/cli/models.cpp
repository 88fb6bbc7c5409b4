#include <fmt/format.h>
#include <iterator>

#include "nsp/cli/output.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

int run_models(const std::string& json, Streams streams) {
  Json list = Json::array();
  std::string table =
      fmt::format("{:<16} {:>6} {:>6} {:>5} {:>8} {:>8} {:>7} {:>5} {:>12} {:>10}\n",
                  "model",
                  "layers",
                  "hidden",
                  "heads",
                  "kv_heads",
                  "head_dim",
                  "experts",
                  "top_k",
                  "intermediate",
                  "vocabulary");
  for (const ModelShape& m : model_presets()) {
    list.push_back(to_json(m));
    fmt::format_to(std::back_inserter(table),
                   "{:<16} {:>6} {:>6} {:>5} {:>8} {:>8} {:>7} {:>5} {:>12} {:>10}\n",
                   m.name,
                   m.layers,
                   m.hidden,
                   m.heads,
                   m.kv_heads,
                   m.head_dim,
                   m.experts,
                   m.top_k,
                   m.intermediate,
                   m.vocabulary);
  }
  write_result(json, list, table, streams);
  return 0;
}

}  // namespace nsp
