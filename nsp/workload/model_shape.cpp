#include "nsp/workload/model_shape.h"

#include <algorithm>
#include <filesystem>

#include "nsp/base/error.h"
#include "nsp/base/hash.h"

namespace nsp {
namespace {

constexpr std::int64_t kMostHeads = 1 << 16;
constexpr std::int64_t kMostOfAShape = 1 << 24;  // products of three stay far from 2^63

}  // namespace

const std::vector<ModelShape>& model_presets() {
  static const std::vector<ModelShape> presets = {
      {.name = "qwen3-30b-a3b",
       .layers = 48,
       .hidden = 2048,
       .heads = 32,
       .kv_heads = 4,
       .head_dim = 128,
       .experts = 128,
       .top_k = 8,
       .intermediate = 768,
       .vocabulary = 151936},
      {.name = "qwen3-235b-a22b",
       .layers = 94,
       .hidden = 4096,
       .heads = 64,
       .kv_heads = 4,
       .head_dim = 128,
       .experts = 128,
       .top_k = 8,
       .intermediate = 1536,
       .vocabulary = 151936},
      {.name = "llama3-8b",
       .layers = 32,
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .intermediate = 14336,
       .vocabulary = 128256},
      {.name = "tiny",
       .layers = 4,
       .hidden = 128,
       .heads = 8,
       .kv_heads = 2,
       .head_dim = 16,
       .experts = 8,
       .top_k = 2,
       .intermediate = 128,
       .vocabulary = 258,
       .bytes_per_value = 4},
  };
  return presets;
}

ModelShape find_model(const std::string& name_or_path) {
  const auto& presets = model_presets();
  const auto it = std::ranges::find(presets, name_or_path, &ModelShape::name);
  if (it != presets.end()) {
    return *it;
  }
  if (name_or_path.starts_with('{')) {
    return model_from_json(parse_json(name_or_path, "model"));
  }
  if (std::filesystem::is_regular_file(name_or_path)) {
    return model_from_json(load_json(name_or_path), name_or_path);
  }
  std::string names;
  for (const ModelShape& preset : presets) {
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  bad_input(
      "model", "'" + name_or_path + "'", "must be one of " + names + " or the path of a JSON file");
}

void check(const ModelShape& shape) {
  const auto positive = [](std::string_view field,
                           std::int64_t value,
                           std::int64_t most = kMostOfAShape) {
    if (value < 1 || value > most) {
      bad_input("model." + std::string(field), value, "must be from 1 to " + std::to_string(most));
    }
  };
  positive("layers", shape.layers);
  positive("hidden", shape.hidden);
  positive("heads", shape.heads, kMostHeads);
  positive("kv_heads", shape.kv_heads);
  positive("head_dim", shape.head_dim);
  positive("intermediate", shape.intermediate);
  positive("vocabulary", shape.vocabulary);
  positive("bytes_per_value", shape.bytes_per_value);
  if (shape.heads % shape.kv_heads != 0) {
    bad_input(
        "model.kv_heads", shape.kv_heads, "must divide heads, " + std::to_string(shape.heads));
  }
  if (shape.experts < 0 || shape.experts > kMostOfAShape) {
    bad_input("model.experts",
              shape.experts,
              "must be from 0 (a dense model) to " + std::to_string(kMostOfAShape));
  }
  if (shape.experts == 0 ? shape.top_k != 0 : shape.top_k < 1 || shape.top_k > shape.experts) {
    bad_input("model.top_k",
              shape.top_k,
              shape.experts == 0 ? "must be 0 without experts"
                                 : "must be from 1 to experts, " + std::to_string(shape.experts));
  }
}

Json to_json(const ModelShape& shape) {
  return {{"name", shape.name},
          {"layers", shape.layers},
          {"hidden", shape.hidden},
          {"heads", shape.heads},
          {"kv_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"experts", shape.experts},
          {"top_k", shape.top_k},
          {"intermediate", shape.intermediate},
          {"vocabulary", shape.vocabulary},
          {"bytes_per_value", shape.bytes_per_value}};
}

ModelShape model_from_json(const Json& json, const std::string& where) {
  const JsonReader reader(json,
                          where,
                          {"name",
                           "layers",
                           "hidden",
                           "heads",
                           "kv_heads",
                           "head_dim",
                           "experts",
                           "top_k",
                           "intermediate",
                           "vocabulary",
                           "bytes_per_value"});
  ModelShape shape = {.name = reader.text("name"),
                      .layers = reader.integer("layers"),
                      .hidden = reader.integer("hidden"),
                      .heads = reader.integer("heads"),
                      .kv_heads = reader.integer("kv_heads"),
                      .head_dim = reader.integer("head_dim"),
                      .experts = reader.integer("experts"),
                      .top_k = reader.integer("top_k"),
                      .intermediate = reader.integer("intermediate"),
                      .vocabulary = reader.integer("vocabulary"),
                      .bytes_per_value = reader.integer("bytes_per_value")};
  check(shape);
  return shape;
}

std::string model_hash(const ModelShape& shape) {
  Json json = to_json(shape);
  json.erase("name");
  return hash_hex(json.dump());
}

}  // namespace nsp
