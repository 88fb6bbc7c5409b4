#include "nsp/plan/plan_json.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "random_plan.h"

namespace nsp {
namespace {

Plan example() {
  Plan plan = make_plan({.world = 16,
                         .sp_max = 16,
                         .ranks_per_host = 8,
                         .token_budget = 100,
                         .model_hash = "aa",
                         .profile_hash = "bb"},
                        {{place(0, 8, {0, 16}), place(1, 6, {8, 8}), place(2, 5, {0, 1})}},
                        {{.sequence = 3, .tokens = 9, .kept = 0, .why = "too long"}});
  plan.rounds[0].placements[1].mark = Mark::kSaveQkv;
  plan.predicted.seconds = 0.125;
  plan.predicted.forward = 1e-3;
  plan.bound_seconds = 0.0625;
  plan.planning_ms = 1.5;
  seal(plan);
  return plan;
}

std::string fault_of(const Json& json) {
  try {
    plan_from_json(json);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no BadInput";
}

TEST(PlanJson, ComesBackAsWritten) {
  EXPECT_EQ(parse_plan(to_json(example()).dump()), example());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Plan plan = random_plan(seed);
    EXPECT_EQ(parse_plan(to_json(plan).dump(2)), plan) << "seed " << seed;
  }
}

TEST(PlanJson, HasTheFieldsOfTheFormat) {
  const Json json = to_json(example());
  EXPECT_EQ(json["format"], "nsp-plan/1");
  EXPECT_EQ(json["rounds"][0]["placements"][1].dump(),
            R"({"backend":"ulysses","degree":8,"first_rank":8,"mark":"save_qkv","sequence":1,)"
            R"("tokens":6,"ulysses_degree":8})");
  EXPECT_EQ(json["rounds"][0]["schedule"]["order"].dump(),
            R"(["prologue:16","prologue:8","compute:1","compute:16","epilogue:16","compute:8",)"
            R"("epilogue:8"])");
  EXPECT_EQ(json["rounds"][0]["schedule"]["transports"].dump(),
            R"({"16":"collective","8":"collective"})");
  EXPECT_EQ(json["bound"]["seconds"], 0.0625);
  EXPECT_EQ(json["dropped"][0]["why"], "too long");
}

TEST(PlanJson, HashCoversWhatExecutionDependsOn) {
  const Plan plan = example();
  Plan other = plan;
  other.predicted.seconds = 9;
  other.bound_seconds = 9;
  other.planning_ms = 9;
  other.hash = "";
  EXPECT_EQ(plan_hash(other), plan.hash);
  other.rounds[0].placements[0].tokens = 9;
  EXPECT_NE(plan_hash(other), plan.hash);
  other = plan;
  std::swap(other.rounds[0].schedule.order[0], other.rounds[0].schedule.order[1]);
  EXPECT_NE(plan_hash(other), plan.hash);
}

TEST(PlanJson, UnknownFieldsAreNamed) {
  Json json = to_json(example());
  json["colour"] = "red";
  EXPECT_EQ(fault_of(json), "plan: unknown field 'colour'");
  json = to_json(example());
  json["rounds"][0]["placements"][1]["color"] = 1;
  EXPECT_EQ(fault_of(json), "plan.rounds[0].placements[1]: unknown field 'color'");
  json = to_json(example());
  json["rounds"][0]["schedule"]["x"] = 1;
  EXPECT_EQ(fault_of(json), "plan.rounds[0].schedule: unknown field 'x'");
  json = to_json(example());
  json["bound"]["x"] = 1;
  EXPECT_EQ(fault_of(json), "plan.bound: unknown field 'x'");
}

TEST(PlanJson, WrongValuesAreNamed) {
  Json json = to_json(example());
  json["format"] = "nsp-plan/2";
  EXPECT_EQ(fault_of(json), "plan.format 'nsp-plan/2': must be nsp-plan/1");
  json = to_json(example());
  json["rounds"][0]["placements"][0]["backend"] = "magic";
  EXPECT_EQ(fault_of(json),
            "plan.rounds[0].placements[0].backend 'magic': must be one of local, ulysses, gather, "
            "ring, usp-ring, usp-gather");
  json = to_json(example());
  json["world"] = 3000000000;
  EXPECT_EQ(fault_of(json), "plan.world 3000000000: must be from 0 to 2147483647");
  json = to_json(example());
  json["rounds"][0]["schedule"]["order"][0] = "prologue";
  EXPECT_EQ(fault_of(json),
            "plan.rounds[0].schedule.order[0] 'prologue': must be a phase and a degree such as "
            "prologue:8");
  json = to_json(example());
  json["rounds"][0]["schedule"]["transports"]["8"] = "pigeon";
  EXPECT_EQ(fault_of(json),
            "plan.rounds[0].schedule.transports.8 'pigeon': must be one of collective, peer_copy");
  json = to_json(example());
  json.erase("hash");
  EXPECT_EQ(fault_of(json), "plan: field 'hash' is missing");
  EXPECT_THROW(parse_plan("[1"), BadInput);
}

}  // namespace
}  // namespace nsp
