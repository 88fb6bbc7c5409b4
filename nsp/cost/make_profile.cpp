#include "nsp/cost/make_profile.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "nsp/base/error.h"

namespace nsp {
namespace {

double attention_parameters(const ModelShape& shape) {
  const auto width = static_cast<double>((2 * shape.heads + 2 * shape.kv_heads) * shape.head_dim);
  return static_cast<double>(shape.hidden) * width;
}

double mlp_parameters(const ModelShape& shape, std::int64_t experts) {
  return 3.0 * static_cast<double>(experts * shape.hidden) *
         static_cast<double>(shape.intermediate);
}

double model_parameters(const ModelShape& shape) {
  return static_cast<double>(shape.layers) * layer_parameters(shape) +
         2.0 * static_cast<double>(shape.vocabulary * shape.hidden);
}

// Whether a frozen profile was made for this shape, whatever the shape is called.
bool is_for(const Profile& preset, const ModelShape& shape) {
  return model_hash(find_model(preset.model)) == model_hash(shape);
}

// What an estimate starts from: the same model on another machine of this kind, else the kind's
// first.
const Profile& nearest(const ModelShape& shape, const Cluster& cluster) {
  const Profile* first = nullptr;
  for (const Profile& preset : profile_presets()) {
    if (find_cluster(preset.cluster).device != cluster.device) {
      continue;
    }
    if (is_for(preset, shape)) {
      return preset;
    }
    if (first == nullptr || preset.model == "qwen3-30b-a3b") {
      first = &preset;
    }
  }
  if (first == nullptr) {
    throw Error("no frozen profile for device kind " + cluster.device);
  }
  return *first;
}

void scale(AttentionLaw& law, double factor) {
  for (BlockPoint& point : law.block) {
    point.seconds *= factor;
  }
  for (double* seconds : {&law.row_seconds, &law.path_row_seconds, &law.path_row_grouped_seconds}) {
    *seconds *= factor;
  }
}

// Part of a layer's parameters that a token uses which are experts': near their part of the
// seconds (measured 0.67 forward for qwen3-30b-a3b, 0.67 by parameters).
double expert_part(const ModelShape& shape) {
  return shape.experts == 0 ? 0
                            : mlp_parameters(shape, shape.top_k) / active_layer_parameters(shape);
}

// `experts`: how the experts' part changes; a measured part stays as it is for the same shape.
void scale(DenseLaw& law, double factor, double experts) {
  const double part = law.expert_token_seconds / law.token_seconds * experts;
  law.token_seconds *= factor;
  law.expert_token_seconds = std::min(part, 1.0) * law.token_seconds;
}

void scale_compute(Profile& profile, const ModelShape& shape, const Cluster& cluster) {
  const ModelShape base = find_model(profile.model);
  const ComputeRates from = find_cluster(profile.cluster).flops_per_second;
  const ComputeRates& to = cluster.flops_per_second;
  const double width = static_cast<double>(shape.head_dim) / static_cast<double>(base.head_dim);
  const double slower = from.dense / to.dense;
  const double dense = active_layer_parameters(shape) / active_layer_parameters(base) * slower;
  const double head = static_cast<double>(shape.hidden * shape.vocabulary) /
                      static_cast<double>(base.hidden * base.vocabulary);
  scale(profile.attention_forward, width * from.attention_forward / to.attention_forward);
  scale(profile.attention_backward, width * from.attention_backward / to.attention_backward);
  const double experts = base.experts > 0 ? expert_part(shape) / expert_part(base) : 0;
  scale(profile.dense_forward, dense, experts);
  scale(profile.dense_backward, dense, experts);
  profile.lm_head_token_seconds *= head * slower;
}

// Rings through all ranks enter and leave a host once, over all of its links to others.
double fsdp_bytes_per_second(const Cluster& cluster) {
  const double host =
      cluster.between.bytes_per_second * static_cast<double>(cluster.ranks_per_host);
  return cluster.hosts == 1 ? cluster.inside.bytes_per_second
                            : std::min(cluster.inside.bytes_per_second, host);
}

Profile from_json(const ModelShape& shape, const Json& json, const std::string& where) {
  if (!json.is_object() || !json.contains("format")) {
    return make_profile(shape, cluster_from_json(json, where));
  }
  Profile profile = profile_from_json(json, where);
  if (profile.model != shape.name) {
    bad_input(where + ".model",
              "'" + profile.model + "'",
              "must be the model planned for, " + shape.name);
  }
  return profile;
}

}  // namespace

double layer_parameters(const ModelShape& shape) {
  const std::int64_t experts = std::max<std::int64_t>(1, shape.experts);
  const auto router = static_cast<double>(shape.experts * shape.hidden);
  return attention_parameters(shape) + mlp_parameters(shape, experts) + router;
}

double active_layer_parameters(const ModelShape& shape) {
  const std::int64_t experts = shape.experts > 0 ? shape.top_k : 1;
  const auto router = static_cast<double>(shape.experts * shape.hidden);
  return attention_parameters(shape) + mlp_parameters(shape, experts) + router;
}

Profile make_profile(const ModelShape& shape, const Cluster& cluster) {
  Profile profile = nearest(shape, cluster);
  profile.hosts = cluster.hosts;
  profile.host_bytes_per_second = cluster.host_bytes_per_second;
  if (is_for(profile, shape) && profile.cluster == cluster.name) {
    profile.model = shape.name;
    return profile;
  }
  scale_compute(profile, shape, cluster);
  profile.source =
      "estimated from the frozen profile of " + profile.model + " on " + profile.cluster;
  profile.measured = false;
  profile.model = shape.name;
  profile.cluster = cluster.name;
  profile.ranks_per_host = cluster.ranks_per_host;
  profile.inside = cluster.inside;
  profile.between = cluster.between;
  const double bytes = layer_parameters(shape) * static_cast<double>(shape.bytes_per_value);
  profile.fsdp = {.gather_bytes = bytes,
                  .scatter_bytes = bytes,
                  .bytes_per_second = fsdp_bytes_per_second(cluster)};
  profile.parameters = model_parameters(shape);
  check(profile);
  return profile;
}

Profile find_profile(const ModelShape& shape, const std::string& name) {
  if (name.starts_with('{')) {
    return from_json(shape, parse_json(name, "profile"), "profile");
  }
  std::string names;
  for (const Cluster& preset : cluster_presets()) {
    if (preset.name == name) {
      return make_profile(shape, preset);
    }
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  if (!std::filesystem::exists(name)) {
    bad_input("profile",
              "'" + name + "'",
              "must be one of " + names + ", or a profile or cluster JSON file");
  }
  return from_json(shape, load_json(name), name);
}

}  // namespace nsp
