#include "nsp/cluster/cluster.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

std::string message(const Json& json) {
  try {
    cluster_from_json(json);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Cluster, PresetsAreSoundAndFoundByName) {
  for (const Cluster& preset : cluster_presets()) {
    EXPECT_NO_THROW(check(preset));
    EXPECT_EQ(find_cluster(preset.name), preset);
  }
  EXPECT_DOUBLE_EQ(find_cluster("slow").between.bytes_per_second, 10e9);
}

TEST(Cluster, JsonComesBackEqual) {
  for (const Cluster& preset : cluster_presets()) {
    EXPECT_EQ(cluster_from_json(Json::parse(to_json(preset).dump())), preset);
  }
}

TEST(Cluster, UnknownNameListsThePresets) {
  try {
    find_cluster("h20");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(
        error.what(),
        "cluster 'h20': must be one of h200, h800, a100, slow, two-h200, cpu-gloo, or a JSON file");
  }
}

TEST(Cluster, BadFieldsAreNamed) {
  Json json = to_json(find_cluster("h200"));
  json["colour"] = 1;
  EXPECT_EQ(message(json), "cluster: unknown field 'colour'");
  json.erase("colour");
  json["inside"]["bytes_per_second"] = 0;
  EXPECT_EQ(message(json), "cluster.inside.bytes_per_second 0.0: must be a number above 0");
  json["inside"].erase("bytes_per_second");
  EXPECT_EQ(message(json), "cluster.inside: field 'bytes_per_second' is missing");
  json = to_json(find_cluster("h200"));
  json["ranks_per_host"] = 0;
  EXPECT_EQ(message(json), "cluster.ranks_per_host 0: must be from 1 to 1048576");
  json = to_json(find_cluster("h200"));
  json["device"] = "tpu";
  EXPECT_EQ(message(json), "cluster.device 'tpu': must be gpu or cpu");
}

}  // namespace
}  // namespace nsp
