#include "nsp/cost/profile.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/base/hash.h"

namespace nsp {
namespace {

// Costs become integer picoseconds; an hour a unit is far beyond any machine and keeps them in
// range.
constexpr double kMostSeconds = 3600;

using Named = std::pair<std::string, double>;

void check_seconds(std::initializer_list<Named> values) {
  for (const auto& [field, value] : values) {
    if (!std::isfinite(value) || value < 0 || value > kMostSeconds) {
      throw BadInput("profile." + field + " " + Json(value).dump() + ": must be from 0 to 3600");
    }
  }
}

void check_amounts(std::initializer_list<Named> values, double least) {
  for (const auto& [field, value] : values) {
    if (!std::isfinite(value) || value < least || value > 1e18) {
      throw BadInput("profile." + field + " " + Json(value).dump() + ": must be from " +
                     (least > 0 ? "1" : "0") + " to 1e18");
    }
  }
}

void check_law(const std::string& field, const AttentionLaw& law) {
  std::int64_t last = 0;
  for (const BlockPoint& point : law.block) {
    check_seconds({{field + ".block.seconds", point.seconds}});
    if (point.tokens <= last) {
      bad_input(
          "profile." + field + ".block.tokens", point.tokens, "must increase from point to point");
    }
    last = point.tokens;
  }
  if (law.block.empty()) {
    bad_input("profile." + field + ".block", "[]", "must hold at least one point");
  }
  check_seconds({{field + ".row_seconds", law.row_seconds},
                 {field + ".entry_seconds", law.entry_seconds},
                 {field + ".entry_grouped_seconds", law.entry_grouped_seconds},
                 {field + ".path_fixed_seconds", law.path_fixed_seconds},
                 {field + ".path_row_seconds", law.path_row_seconds},
                 {field + ".path_fixed_grouped_seconds", law.path_fixed_grouped_seconds},
                 {field + ".path_row_grouped_seconds", law.path_row_grouped_seconds},
                 {field + ".launch_seconds", law.launch_seconds}});
}

void check_dense(const std::string& field, const DenseLaw& law) {
  check_seconds({{field + ".fixed_seconds", law.fixed_seconds},
                 {field + ".token_seconds", law.token_seconds},
                 {field + ".expert_token_seconds", law.expert_token_seconds}});
  if (law.expert_token_seconds > law.token_seconds) {
    bad_input("profile." + field + ".expert_token_seconds",
              Json(law.expert_token_seconds).dump(),
              "is a part of token_seconds and must not be above it");
  }
}

}  // namespace

void check(const Profile& profile) {
  check_law("attention_forward", profile.attention_forward);
  check_law("attention_backward", profile.attention_backward);
  check_dense("dense_forward", profile.dense_forward);
  check_dense("dense_backward", profile.dense_backward);
  check_seconds({{"inside.latency_seconds", profile.inside.latency_seconds},
                 {"between.latency_seconds", profile.between.latency_seconds},
                 {"merge_value_seconds", profile.merge_value_seconds},
                 {"lm_head_token_seconds", profile.lm_head_token_seconds},
                 {"optimizer_parameter_seconds", profile.optimizer_parameter_seconds}});
  check_amounts({{"inside.bytes_per_second", profile.inside.bytes_per_second},
                 {"between.bytes_per_second", profile.between.bytes_per_second},
                 {"fsdp.bytes_per_second", profile.fsdp.bytes_per_second}},
                1);
  check_amounts({{"fsdp.gather_bytes", profile.fsdp.gather_bytes},
                 {"fsdp.scatter_bytes", profile.fsdp.scatter_bytes},
                 {"host_bytes_per_second", profile.host_bytes_per_second},
                 {"parameters", profile.parameters}},
                0);
  if (profile.hosts < 0 || profile.hosts > (1 << 20)) {
    bad_input("profile.hosts", profile.hosts, "must be from 0 (any number) to 1048576");
  }
  if (profile.ranks_per_host < 1 || profile.ranks_per_host > (1 << 20)) {
    bad_input("profile.ranks_per_host", profile.ranks_per_host, "must be from 1 to 1048576");
  }
}

void check_world(const Profile& profile, std::int32_t world) {
  const std::int64_t most = profile.hosts * profile.ranks_per_host;
  if (profile.hosts > 0 && world > most) {
    bad_input("world",
              world,
              "the profile is of " + profile.cluster + ", which has " + std::to_string(most) +
                  (most == 1 ? " rank" : " ranks") + "; give no more, or another profile");
  }
}

std::string profile_hash(const Profile& profile) {
  Json json = to_json(profile);
  json.erase("source");
  json.erase("hosts");
  json.erase("host_bytes_per_second");
  return hash_hex(json.dump());
}

}  // namespace nsp
