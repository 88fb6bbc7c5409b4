// Strict reading of nsp-plan/1: every fault names the path of its field.
#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <span>

#include "nsp/base/error.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_names.h"
#include "nsp/plan/plan_scan.h"

namespace nsp {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  result += text;
  result += "'";
  return result;
}

template <class Enum>
Enum enum_from(std::span<const std::string_view> names,
               std::string_view text,
               const std::string& where) {
  const auto it = std::ranges::find(names, text);
  if (it == names.end()) {
    std::string allowed;
    for (const std::string_view allowed_name : names) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(allowed_name);
    }
    bad_input(where, in_quotes(text), "must be one of " + allowed);
  }
  return static_cast<Enum>(it - names.begin());
}

std::int32_t narrow(std::int64_t value, const std::string& where) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
    bad_input(where, value, "must be from 0 to 2147483647");
  }
  return static_cast<std::int32_t>(value);
}

std::int32_t small_integer(const JsonReader& reader, std::string_view field) {
  return narrow(reader.integer(field), reader.where(field));
}

std::int32_t parse_degree(std::string_view text, const std::string& where) {
  std::int32_t degree = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), degree);
  if (error != std::errc{} || end != text.data() + text.size() || degree < 1) {
    bad_input(where, in_quotes(text), "must be a degree such as 8");
  }
  return degree;
}

std::string element(const std::string& where, std::size_t index) {
  return where + "[" + std::to_string(index) + "]";
}

Placement read_placement(const Json& json, const std::string& where) {
  const JsonReader reader(
      json,
      where,
      {"sequence", "tokens", "first_rank", "degree", "backend", "ulysses_degree", "mark"});
  return {.sequence = reader.integer("sequence"),
          .tokens = reader.integer("tokens"),
          .node = {.first_rank = small_integer(reader, "first_rank"),
                   .degree = small_integer(reader, "degree")},
          .backend = enum_from<Backend>(kBackends, reader.text("backend"), reader.where("backend")),
          .ulysses_degree = small_integer(reader, "ulysses_degree"),
          .mark = enum_from<Mark>(kMarks, reader.text("mark"), reader.where("mark"))};
}

Issue read_issue(const Json& json, const std::string& where) {
  if (!json.is_string()) {
    bad_input(where, json.dump(), "must be a string such as \"prologue:8\"");
  }
  const std::string whole = json.get<std::string>();
  std::string_view text = whole;
  const bool is_short = text.ends_with(kShortWave);
  text.remove_suffix(is_short ? kShortWave.size() : 0);
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    bad_input(where, in_quotes(whole), "must be a phase and a degree such as prologue:8");
  }
  return {.phase = enum_from<Phase>(kPhases, text.substr(0, colon), where),
          .degree = parse_degree(text.substr(colon + 1), where),
          .wave = is_short ? Wave::kShort : Wave::kLong};
}

std::vector<LevelTransport> read_transports(const JsonReader& schedule) {
  const std::string where = schedule.where("transports");
  const Json& json = schedule.at("transports");
  if (!json.is_object()) {
    bad_input(where, json.dump(), "must be an object such as {\"8\": \"collective\"}");
  }
  std::vector<LevelTransport> transports;
  for (const auto& [key, value] : json.items()) {
    const std::string here = where + "." + key;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    transports.push_back({.degree = parse_degree(key, here),
                          .transport = enum_from<Transport>(kTransports, text, here)});
  }
  std::ranges::sort(transports, std::greater<>{}, &LevelTransport::degree);  // root to leaf
  return transports;
}

std::vector<LevelCut> read_cuts(const JsonReader& schedule) {
  if (!schedule.has("cuts")) {
    return {};
  }
  const std::string where = schedule.where("cuts");
  const Json& json = schedule.at("cuts");
  if (!json.is_object() || json.empty()) {
    bad_input(where, json.dump(), "must be an object such as {\"8\": 4096}, or left out");
  }
  std::vector<LevelCut> cuts;
  for (const auto& [key, value] : json.items()) {
    const std::string here = where + "." + key;
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
      bad_input(here, value.dump(), "must be a number of tokens");
    }
    cuts.push_back({.degree = parse_degree(key, here), .tokens = value.get<std::int64_t>()});
  }
  std::ranges::sort(cuts, std::greater<>{}, &LevelCut::degree);  // root to leaf
  return cuts;
}

Schedule read_schedule(const Json& json, const std::string& where) {
  const JsonReader reader(json, where, {"order", "leaf_first", "transports", "cuts"});
  Schedule schedule;
  for (const Json& issue : reader.array("order")) {
    schedule.order.push_back(
        read_issue(issue, element(reader.where("order"), schedule.order.size())));
  }
  for (const Json& count : reader.array("leaf_first")) {
    const std::string here = element(reader.where("leaf_first"), schedule.leaf_first.size());
    if (!count.is_number_integer()) {
      bad_input(here, count.dump(), "must be an integer");
    }
    schedule.leaf_first.push_back(narrow(count.get<std::int64_t>(), here));
  }
  schedule.transports = read_transports(reader);
  schedule.cuts = read_cuts(reader);
  return schedule;
}

Round read_round(const Json& json, const std::string& where) {
  const JsonReader reader(json, where, {"placements", "schedule"});
  Round round;
  for (const Json& placement : reader.array("placements")) {
    round.placements.push_back(
        read_placement(placement, element(reader.where("placements"), round.placements.size())));
  }
  round.schedule = read_schedule(reader.at("schedule"), reader.where("schedule"));
  return round;
}

Dropped read_dropped(const Json& json, const std::string& where) {
  const JsonReader reader(json, where, {"sequence", "tokens", "kept", "why"});
  return {.sequence = reader.integer("sequence"),
          .tokens = reader.integer("tokens"),
          .kept = reader.integer("kept"),
          .why = reader.text("why")};
}

Predicted read_predicted(const Json& json, const std::string& where) {
  const JsonReader reader(
      json, where, {"seconds", "forward", "backward", "tokens_max", "bytes_max"});
  return {.seconds = reader.number("seconds"),
          .forward = reader.number("forward"),
          .backward = reader.number("backward"),
          .tokens_max = reader.integer("tokens_max"),
          .bytes_max = reader.integer("bytes_max")};
}

Plan read_settings(const JsonReader& reader) {
  return {.world = small_integer(reader, "world"),
          .ranks_per_host = small_integer(reader, "ranks_per_host"),
          .sp_max = small_integer(reader, "sp_max"),
          .token_budget = reader.integer("token_budget"),
          .planner = reader.text("planner"),
          .effort = reader.text("effort"),
          .feasible = reader.boolean("feasible"),
          .num_sequences = reader.integer("num_sequences"),
          .num_tokens = reader.integer("num_tokens"),
          .bound_seconds =
              JsonReader(reader.at("bound"), reader.where("bound"), {"seconds"}).number("seconds"),
          .model_hash = reader.text("model_hash"),
          .profile_hash = reader.text("profile_hash"),
          .hash = reader.text("hash"),
          .planning_ms = reader.number("planning_ms")};
}

}  // namespace

Plan plan_from_json(const Json& json) {
  const JsonReader reader(json,
                          "plan",
                          {"format",
                           "world",
                           "ranks_per_host",
                           "sp_max",
                           "token_budget",
                           "planner",
                           "effort",
                           "feasible",
                           "num_sequences",
                           "num_tokens",
                           "rounds",
                           "dropped",
                           "predicted",
                           "bound",
                           "model_hash",
                           "profile_hash",
                           "hash",
                           "planning_ms"});
  if (reader.text("format") != kFormat) {
    bad_input("plan.format", in_quotes(reader.text("format")), "must be " + std::string(kFormat));
  }
  Plan plan = read_settings(reader);
  for (const Json& round : reader.array("rounds")) {
    plan.rounds.push_back(read_round(round, element("plan.rounds", plan.rounds.size())));
  }
  for (const Json& dropped : reader.array("dropped")) {
    plan.dropped.push_back(read_dropped(dropped, element("plan.dropped", plan.dropped.size())));
  }
  plan.predicted = read_predicted(reader.at("predicted"), reader.where("predicted"));
  return plan;
}

Plan parse_plan(std::string_view text, std::string_view what) {
  if (std::optional<Plan> plan = scan_plan(text)) {
    return *std::move(plan);
  }
  const Json json = parse_json(text, what);
  try {
    return plan_from_json(json);
  } catch (const BadInput& error) {
    throw BadInput(what == "plan" ? error.what() : std::string(what) + ": " + error.what());
  }
}

}  // namespace nsp
