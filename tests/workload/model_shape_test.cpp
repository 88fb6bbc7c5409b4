#include "nsp/workload/model_shape.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "tests/temporary.h"

namespace nsp {
namespace {

std::string fault_of(const Json& json) {
  try {
    model_from_json(json);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no BadInput";
}

TEST(ModelShape, PresetsAreSoundAndComeBackFromJson) {
  for (const ModelShape& preset : model_presets()) {
    EXPECT_NO_THROW(check(preset)) << preset.name;
    EXPECT_EQ(model_from_json(to_json(preset)), preset);
    EXPECT_EQ(find_model(preset.name), preset);
  }
}

TEST(ModelShape, Qwen3HasItsPublishedShape) {
  const ModelShape shape = find_model("qwen3-30b-a3b");
  EXPECT_EQ(shape.layers, 48);
  EXPECT_EQ(shape.heads, 32);
  EXPECT_EQ(shape.kv_heads, 4);
  EXPECT_EQ(shape.experts, 128);
}

TEST(ModelShape, ComesFromAFileOrJsonText) {
  ModelShape shape = find_model("tiny");
  shape.name = "mine";
  const std::string path = temporary_path("file.json");
  write_file(path, to_json(shape).dump());
  EXPECT_EQ(find_model(path), shape);
  EXPECT_EQ(find_model(to_json(shape).dump()), shape);
}

TEST(ModelShape, AnUnknownNameListsThePresets) {
  try {
    find_model("gpt-9");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("model 'gpt-9': must be one of qwen3-30b-a3b"),
              std::string::npos);
  }
}

TEST(ModelShape, FaultsNameTheField) {
  Json json = to_json(find_model("tiny"));
  json["layers"] = 0;
  EXPECT_EQ(fault_of(json), "model.layers 0: must be from 1 to 16777216");
  json["layers"] = 4;
  json["heads"] = 1 << 20;
  EXPECT_EQ(fault_of(json), "model.heads 1048576: must be from 1 to 65536");
  json["heads"] = 8;
  json["kv_heads"] = 3;
  EXPECT_EQ(fault_of(json), "model.kv_heads 3: must divide heads, 8");
  json["kv_heads"] = 2;
  json["top_k"] = 9;
  EXPECT_EQ(fault_of(json), "model.top_k 9: must be from 1 to experts, 8");
  json["experts"] = 0;
  EXPECT_EQ(fault_of(json), "model.top_k 9: must be 0 without experts");
  json["width"] = 1;
  EXPECT_EQ(fault_of(json), "model: unknown field 'width'");
}

TEST(ModelShape, HashIsOfTheShapeNotTheName) {
  ModelShape shape = find_model("tiny");
  const std::string hash = model_hash(shape);
  shape.name = "other";
  EXPECT_EQ(model_hash(shape), hash);
  shape.layers += 1;
  EXPECT_NE(model_hash(shape), hash);
}

}  // namespace
}  // namespace nsp
