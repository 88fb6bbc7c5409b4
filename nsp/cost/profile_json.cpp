#include "nsp/base/error.h"
#include "nsp/cost/profile.h"

namespace nsp {
namespace {

constexpr const char* kFormat = "nsp-profile/1";

Json law_json(const AttentionLaw& law) {
  Json block = Json::array();
  for (const BlockPoint& point : law.block) {
    block.push_back({{"tokens", point.tokens}, {"seconds", point.seconds}});
  }
  return {{"block", block},
          {"row_seconds", law.row_seconds},
          {"entry_seconds", law.entry_seconds},
          {"entry_grouped_seconds", law.entry_grouped_seconds},
          {"path_fixed_seconds", law.path_fixed_seconds},
          {"path_row_seconds", law.path_row_seconds},
          {"path_fixed_grouped_seconds", law.path_fixed_grouped_seconds},
          {"path_row_grouped_seconds", law.path_row_grouped_seconds},
          {"launch_seconds", law.launch_seconds}};
}

AttentionLaw read_law(const Json& json, const std::string& where) {
  const JsonReader in(json,
                      where,
                      {"block",
                       "row_seconds",
                       "entry_seconds",
                       "entry_grouped_seconds",
                       "path_fixed_seconds",
                       "path_row_seconds",
                       "path_fixed_grouped_seconds",
                       "path_row_grouped_seconds",
                       "launch_seconds"});
  AttentionLaw law{.block = {},
                   .row_seconds = in.number("row_seconds"),
                   .entry_seconds = in.number("entry_seconds"),
                   .entry_grouped_seconds = in.number("entry_grouped_seconds"),
                   .path_fixed_seconds = in.number("path_fixed_seconds"),
                   .path_row_seconds = in.number("path_row_seconds"),
                   .path_fixed_grouped_seconds = in.number("path_fixed_grouped_seconds"),
                   .path_row_grouped_seconds = in.number("path_row_grouped_seconds"),
                   .launch_seconds = in.number("launch_seconds")};
  for (const Json& item : in.array("block")) {
    const JsonReader point(item, in.where("block"), {"tokens", "seconds"});
    law.block.push_back({.tokens = point.integer("tokens"), .seconds = point.number("seconds")});
  }
  return law;
}

Json dense_json(const DenseLaw& law) {
  return {{"fixed_seconds", law.fixed_seconds},
          {"token_seconds", law.token_seconds},
          {"expert_token_seconds", law.expert_token_seconds}};
}

// Files from before expert parallelism leave its part out.
DenseLaw read_dense(const Json& json, const std::string& where) {
  const JsonReader in(json, where, {"fixed_seconds", "token_seconds", "expert_token_seconds"});
  DenseLaw law{.fixed_seconds = in.number("fixed_seconds"),
               .token_seconds = in.number("token_seconds")};
  if (in.has("expert_token_seconds")) {
    law.expert_token_seconds = in.number("expert_token_seconds");
  }
  return law;
}

Json link_json(const Link& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}};
}

Link read_link(const Json& json, const std::string& where) {
  const JsonReader in(json, where, {"bytes_per_second", "latency_seconds"});
  return {.bytes_per_second = in.number("bytes_per_second"),
          .latency_seconds = in.number("latency_seconds")};
}

FsdpCost read_fsdp(const Json& json, const std::string& where) {
  const JsonReader in(json, where, {"gather_bytes", "scatter_bytes", "bytes_per_second"});
  return {.gather_bytes = in.number("gather_bytes"),
          .scatter_bytes = in.number("scatter_bytes"),
          .bytes_per_second = in.number("bytes_per_second")};
}

}  // namespace

Json to_json(const Profile& profile) {
  Json json = {{"format", kFormat},
               {"model", profile.model},
               {"cluster", profile.cluster},
               {"measured", profile.measured},
               {"source", profile.source},
               {"ranks_per_host", profile.ranks_per_host},
               {"attention_forward", law_json(profile.attention_forward)},
               {"attention_backward", law_json(profile.attention_backward)},
               {"dense_forward", dense_json(profile.dense_forward)},
               {"dense_backward", dense_json(profile.dense_backward)},
               {"inside", link_json(profile.inside)},
               {"between", link_json(profile.between)},
               {"fsdp",
                {{"gather_bytes", profile.fsdp.gather_bytes},
                 {"scatter_bytes", profile.fsdp.scatter_bytes},
                 {"bytes_per_second", profile.fsdp.bytes_per_second}}},
               {"merge_value_seconds", profile.merge_value_seconds},
               {"lm_head_token_seconds", profile.lm_head_token_seconds},
               {"optimizer_parameter_seconds", profile.optimizer_parameter_seconds},
               {"parameters", profile.parameters}};
  if (profile.hosts > 0) {
    json["hosts"] = profile.hosts;
  }
  if (profile.host_bytes_per_second > 0) {
    json["host_bytes_per_second"] = profile.host_bytes_per_second;
  }
  return json;
}

Profile profile_from_json(const Json& json, const std::string& where) {
  const JsonReader in(json,
                      where,
                      {"format",
                       "model",
                       "cluster",
                       "measured",
                       "source",
                       "hosts",
                       "ranks_per_host",
                       "attention_forward",
                       "attention_backward",
                       "dense_forward",
                       "dense_backward",
                       "inside",
                       "between",
                       "fsdp",
                       "host_bytes_per_second",
                       "merge_value_seconds",
                       "lm_head_token_seconds",
                       "optimizer_parameter_seconds",
                       "parameters"});
  if (in.text("format") != kFormat) {
    bad_input(where + ".format", "'" + in.text("format") + "'", "must be nsp-profile/1");
  }
  const auto law = [&](const char* field) { return read_law(in.at(field), in.where(field)); };
  const auto dense = [&](const char* field) { return read_dense(in.at(field), in.where(field)); };
  const auto link = [&](const char* field) { return read_link(in.at(field), in.where(field)); };
  Profile profile{.model = in.text("model"),
                  .cluster = in.text("cluster"),
                  .measured = in.boolean("measured"),
                  .source = in.text("source"),
                  .ranks_per_host = in.integer("ranks_per_host"),
                  .attention_forward = law("attention_forward"),
                  .attention_backward = law("attention_backward"),
                  .dense_forward = dense("dense_forward"),
                  .dense_backward = dense("dense_backward"),
                  .inside = link("inside"),
                  .between = link("between"),
                  .fsdp = read_fsdp(in.at("fsdp"), in.where("fsdp")),
                  .lm_head_token_seconds = in.number("lm_head_token_seconds"),
                  .optimizer_parameter_seconds = in.number("optimizer_parameter_seconds"),
                  .parameters = in.number("parameters")};
  if (in.has("merge_value_seconds")) {  // files from before gather and ring leave it out
    profile.merge_value_seconds = in.number("merge_value_seconds");
  }
  if (in.has("hosts")) {
    profile.hosts = in.integer("hosts");
  }
  if (in.has("host_bytes_per_second")) {
    profile.host_bytes_per_second = in.number("host_bytes_per_second");
  }
  check(profile);
  return profile;
}

}  // namespace nsp
