#include "nsp/cost/profile.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/cost/make_profile.h"

namespace nsp {
namespace {

std::string message(const Json& json) {
  try {
    profile_from_json(json);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Profile, JsonComesBackEqual) {
  ASSERT_EQ(profile_presets().size(), 3U);
  for (const Profile& preset : profile_presets()) {
    const Profile again = profile_from_json(Json::parse(to_json(preset).dump()));
    EXPECT_EQ(again, preset);
    EXPECT_EQ(profile_hash(again), profile_hash(preset));
  }
}

TEST(Profile, HashSeesNumbersButNotTheSourceText) {
  Profile profile = profile_presets().front();
  const std::string hash = profile_hash(profile);
  profile.source = "elsewhere";
  EXPECT_EQ(profile_hash(profile), hash);
  profile.dense_forward.token_seconds *= 2;
  EXPECT_NE(profile_hash(profile), hash);
}

TEST(Profile, FilesWithoutExpertsOrMergesStillRead) {
  Json json = to_json(profile_presets().front());
  json.erase("merge_value_seconds");
  json["dense_forward"].erase("expert_token_seconds");
  const Profile profile = profile_from_json(json);
  EXPECT_EQ(profile.merge_value_seconds, Profile{}.merge_value_seconds);
  EXPECT_EQ(profile.dense_forward.expert_token_seconds, 0);
  json["dense_backward"]["expert_token_seconds"] = 1;
  EXPECT_EQ(message(json),
            "profile.dense_backward.expert_token_seconds 1.0: is a part of token_seconds and must "
            "not be above it");
}

TEST(Profile, TheLinkToTheHostIsOptionalAndOutsideTheHash) {
  Profile profile = profile_presets().front();
  const std::string hash = profile_hash(profile);
  EXPECT_EQ(profile.host_bytes_per_second, 0);
  EXPECT_FALSE(to_json(profile).contains("host_bytes_per_second"));
  profile.host_bytes_per_second = 50e9;
  EXPECT_EQ(profile_from_json(to_json(profile)), profile);
  EXPECT_EQ(profile_hash(profile), hash);
  Json json = to_json(profile);
  json["host_bytes_per_second"] = -1;
  EXPECT_EQ(message(json), "profile.host_bytes_per_second -1.0: must be from 0 to 1e18");
}

TEST(MakeProfile, ExpertsTakeTheirPartOfTheDenseSeconds) {
  const auto part = [](const char* model, const char* cluster) {
    const DenseLaw law = find_profile(find_model(model), cluster).dense_forward;
    return law.expert_token_seconds / law.token_seconds;
  };
  EXPECT_NEAR(part("qwen3-30b-a3b", "h200"), 0.671, 0.001);  // measured
  EXPECT_NEAR(part("qwen3-235b-a22b", "h800"), 0.683, 0.001);
  EXPECT_EQ(part("llama3-8b", "h200"), 0);
  EXPECT_NEAR(part("tiny", "h200"), 0.70, 0.02);  // estimated by parameters
}

TEST(Profile, BadFieldsAreNamed) {
  const Json good = to_json(profile_presets().front());
  Json json = good;
  json["format"] = "nsp-profile/2";
  EXPECT_EQ(message(json), "profile.format 'nsp-profile/2': must be nsp-profile/1");
  json = good;
  json["attention_forward"]["slope"] = 1;
  EXPECT_EQ(message(json), "profile.attention_forward: unknown field 'slope'");
  json = good;
  json["dense_forward"]["token_seconds"] = -1;
  EXPECT_EQ(message(json), "profile.dense_forward.token_seconds -1.0: must be from 0 to 3600");
  json = good;
  json["attention_backward"]["block"] = Json::array();
  EXPECT_EQ(message(json), "profile.attention_backward.block []: must hold at least one point");
  json = good;
  json["fsdp"]["bytes_per_second"] = 0;
  EXPECT_EQ(message(json), "profile.fsdp.bytes_per_second 0.0: must be from 1 to 1e18");
}

TEST(MakeProfile, FrozenMeasurementsWin) {
  for (const char* model : {"qwen3-30b-a3b", "qwen3-235b-a22b"}) {
    const Profile profile = find_profile(find_model(model), "h200");
    EXPECT_TRUE(profile.measured);
    EXPECT_EQ(profile.model, model);
  }
  EXPECT_EQ(find_profile(find_model("tiny"), "cpu-gloo").cluster, "cpu-gloo");
}

// Files from before leave `hosts` out; the hash of a profile does not know it.
TEST(Profile, ItsClusterMayHaveAnEnd) {
  Profile profile = profile_presets().front();
  EXPECT_FALSE(to_json(profile).contains("hosts"));
  check_world(profile, 1 << 20);
  const std::string hash = profile_hash(profile);
  profile.hosts = 3;
  profile.ranks_per_host = 8;
  EXPECT_EQ(profile_hash(profile), hash);
  EXPECT_EQ(profile_from_json(to_json(profile)), profile);
  check_world(profile, 24);
  EXPECT_THROW(check_world(profile, 25), BadInput);
  EXPECT_EQ(find_profile(find_model("tiny"), "two-h200").hosts, 1);
}

TEST(MakeProfile, FrozenLinksAreTheClusters) {
  for (const Profile& preset : profile_presets()) {
    const Cluster cluster = find_cluster(preset.cluster);
    EXPECT_EQ(preset.inside, cluster.inside) << preset.model;
    EXPECT_EQ(preset.between, cluster.between) << preset.model;
    EXPECT_EQ(preset.ranks_per_host, cluster.ranks_per_host) << preset.model;
    EXPECT_DOUBLE_EQ(preset.fsdp.gather_bytes,
                     layer_parameters(find_model(preset.model)) *
                         static_cast<double>(find_model(preset.model).bytes_per_value));
  }
}

TEST(MakeProfile, EveryModelHasAnEstimateOnEveryCluster) {
  for (const ModelShape& shape : model_presets()) {
    for (const Cluster& cluster : cluster_presets()) {
      const Profile profile = make_profile(shape, cluster);
      EXPECT_EQ(profile.model, shape.name);
      EXPECT_EQ(profile.cluster, cluster.name);
      EXPECT_EQ(profile.inside, cluster.inside);
      EXPECT_EQ(profile.host_bytes_per_second, cluster.host_bytes_per_second);
    }
  }
}

TEST(MakeProfile, EstimatesScaleWithRatesAndShape) {
  const Profile h200 = find_profile(find_model("qwen3-30b-a3b"), "h200");
  const Profile h800 = find_profile(find_model("qwen3-30b-a3b"), "h800");
  EXPECT_FALSE(h800.measured);
  EXPECT_NEAR(h800.dense_forward.token_seconds, h200.dense_forward.token_seconds / 0.9, 1e-12);
  EXPECT_NEAR(h800.attention_forward.row_seconds, h200.attention_forward.row_seconds / 0.9, 1e-14);
  ModelShape narrow = find_model("qwen3-30b-a3b");
  narrow.name = "narrow";
  narrow.head_dim = 64;
  const Profile half = find_profile(narrow, "h200");
  EXPECT_NEAR(half.attention_forward.row_seconds, h200.attention_forward.row_seconds / 2, 1e-14);
}

TEST(MakeProfile, AcceptsInlineJsonAndRefusesOthers) {
  const ModelShape tiny = find_model("tiny");
  const Profile profile = find_profile(tiny, "cpu-gloo");
  EXPECT_EQ(find_profile(tiny, to_json(profile).dump()), profile);
  EXPECT_EQ(find_profile(tiny, to_json(find_cluster("cpu-gloo")).dump()), profile);
  EXPECT_THROW(find_profile(find_model("llama3-8b"), to_json(profile).dump()), BadInput);
  EXPECT_THROW(find_profile(tiny, "nowhere"), BadInput);
}

}  // namespace
}  // namespace nsp
