#include "nsp/plan/plan_json.h"

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/base/hash.h"
#include "nsp/plan/plan_scan.h"
#include "random_cuts.h"
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

// The tree of JSON values is the oracle of what is written without one.
std::string hash_by_tree(const Plan& plan) {
  Json json = to_json(plan);
  for (const char* field : {"predicted", "bound", "planning_ms", "hash"}) {
    json.erase(field);
  }
  return hash_hex(json.dump());
}

Plan with_random_marks_and_numbers(Plan plan, std::uint64_t seed) {
  Random random(seed);
  const auto fraction = [&] {
    return static_cast<double>(random.next()) / (1.0 + static_cast<double>(random.below(1 << 30)));
  };
  for (Round& round : plan.rounds) {
    for (Placement& placement : round.placements) {
      placement.mark = Mark(random.below(4));
      placement.backend = Backend(random.below(6));
    }
    for (LevelTransport& level : round.schedule.transports) {
      level.transport = Transport(random.below(2));
    }
  }
  for (std::uint64_t i = 0; i < random.below(3); ++i) {
    plan.dropped.push_back({.sequence = 100, .tokens = kMaxTokens, .kept = 0, .why = "too long"});
  }
  plan.feasible = random.below(2) == 0;
  plan.predicted = {
      fraction(), 1 / fraction(), 0.5, 7, static_cast<std::int64_t>(random.next() / 2)};
  plan.bound_seconds = static_cast<double>(random.below(9));
  plan.planning_ms = fraction() * 1e-18;
  return plan;
}

TEST(PlanJson, TextAndHashAreThoseOfTheTree) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Plan plan = with_random_marks_and_numbers(random_plan(seed), seed);
    plan = seed % 2 == 0 ? with_random_cuts(plan, seed) : plan;
    ASSERT_EQ(json_text(plan), to_json(plan).dump()) << "seed " << seed;
    ASSERT_EQ(plan_hash(plan), hash_by_tree(plan)) << "seed " << seed;
  }
}

TEST(PlanJson, TextEscapesStringsAsTheTreeDoes) {
  Plan plan = example();
  for (const char* text :
       {"", "\"quoted\" \\ /", "line\nbreak\t\x01\x7f", "Gr\u00f6\u00dfe \u20ac"}) {
    plan.planner = text;
    plan.effort = text;
    plan.model_hash = text;
    plan.dropped[0].why = text;
    EXPECT_EQ(json_text(plan), to_json(plan).dump());
    EXPECT_EQ(plan_hash(plan), hash_by_tree(plan));
  }
  plan.planner = "not UTF-8: \xff";
  EXPECT_THROW(json_text(plan), Json::exception);
}

// Canonical text is read without a tree; any other form by the strict reader: one result.
TEST(PlanJson, CanonicalTextIsReadAsTheTreeIs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Plan plan = with_random_marks_and_numbers(random_plan(seed), seed);
    plan = seed % 2 == 0 ? with_random_cuts(plan, seed) : plan;
    const std::string text = json_text(plan);
    ASSERT_EQ(scan_plan(text), plan) << "seed " << seed;
    ASSERT_EQ(plan_from_json(parse_json(text, "plan")), plan) << "seed " << seed;
  }
}

Plan cut_example() {
  Plan plan = example();
  plan.rounds[0].placements[0].node = {0, 8};
  plan.rounds[0].placements[0].ulysses_degree = 8;
  plan.rounds[0].schedule.cuts = {{.degree = 8, .tokens = 7}};
  plan.rounds[0].schedule.order = default_order(plan.rounds[0]);
  seal(plan);
  return plan;
}

TEST(PlanJson, CutsAreThereOnlyWhereALevelIsCut) {
  EXPECT_FALSE(to_json(example())["rounds"][0]["schedule"].contains("cuts"));
  const Plan plan = cut_example();
  const Json json = to_json(plan);
  EXPECT_EQ(json["rounds"][0]["schedule"]["cuts"].dump(), R"({"8":7})");
  EXPECT_EQ(json["rounds"][0]["schedule"]["order"].dump(),
            R"(["prologue:8:short","prologue:8","compute:1","compute:8:short","epilogue:8:short",)"
            R"("compute:8","epilogue:8"])");
  EXPECT_EQ(parse_plan(json.dump(2)), plan);
  Json faulty = json;
  faulty["rounds"][0]["schedule"]["cuts"]["8"] = "far";
  EXPECT_EQ(fault_of(faulty), "plan.rounds[0].schedule.cuts.8 \"far\": must be a number of tokens");
  faulty["rounds"][0]["schedule"]["cuts"] = Json::object();
  EXPECT_EQ(fault_of(faulty),
            "plan.rounds[0].schedule.cuts {}: must be an object such as {\"8\": 4096}, or left "
            "out");
}

// One byte changed, lost or doubled anywhere: the answer, a plan or a fault, is the strict
// reader's.
TEST(PlanJson, DamagedTextIsJudgedByTheStrictReader) {
  const std::string text = json_text(cut_example());
  const auto judged = [](const auto& read) -> std::string {
    try {
      return to_json(read()).dump();
    } catch (const BadInput& error) {
      return error.what();
    }
  };
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    const std::size_t at = random.below(text.size());
    const char other = R"(0-9.:,"{}[]atse e\)"[random.below(19)];
    damaged.replace(at, random.below(2), random.below(3), other);
    ASSERT_EQ(judged([&] { return parse_plan(damaged); }),
              judged([&] { return plan_from_json(parse_json(damaged, "plan")); }))
        << damaged;
  }
}

TEST(PlanJson, OtherFormsAreNotScanned) {
  Plan plan = example();
  EXPECT_FALSE(scan_plan(to_json(plan).dump(1)));
  EXPECT_FALSE(scan_plan(json_text(plan) + " "));
  plan.planner = "with \"quotes\"";
  EXPECT_FALSE(scan_plan(json_text(plan)));
  EXPECT_EQ(parse_plan(json_text(plan)), plan);
  plan = example();
  plan.rounds[0].placements[0].node.first_rank = -1;
  EXPECT_FALSE(scan_plan(json_text(plan)));
}

// Pinned: a plan planned by an older version must keep its hash.
TEST(PlanJson, HashOfTheExampleStaysAsItWas) {
  EXPECT_EQ(example().hash, "5e288c5b4cdfac263c16a508ff136ebc");
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
  other = plan;
  other.rounds[0].schedule.cuts = {{.degree = 8, .tokens = 6}};
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
