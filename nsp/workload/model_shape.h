// The shape of a decoder-only transformer: what cost, memory and head limits follow from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/base/json.h"

namespace nsp {

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t experts = 0;       // 0: a dense model
  std::int64_t top_k = 0;         // experts a token uses; 0 for a dense model
  std::int64_t intermediate = 0;  // width of one expert, or of the dense MLP
  std::int64_t vocabulary = 0;
  std::int64_t bytes_per_value = 2;  // of activations

  bool operator==(const ModelShape&) const = default;
};

// qwen3-30b-a3b, qwen3-235b-a22b, llama3-8b, tiny (the model of `make train`).
const std::vector<ModelShape>& model_presets();

// A preset's name, the path of a JSON file with these fields, or such JSON itself (it starts with
// '{'). Throws BadInput that lists the presets.
ModelShape find_model(const std::string& name_or_path);

// Throws BadInput that names the field unless every size is positive and heads is a multiple of
// kv_heads.
void check(const ModelShape& shape);

Json to_json(const ModelShape& shape);
ModelShape model_from_json(const Json& json, const std::string& where = "model");

// XXH3-128 of the canonical JSON without the name.
std::string model_hash(const ModelShape& shape);

}  // namespace nsp
