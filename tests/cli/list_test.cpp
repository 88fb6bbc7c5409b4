#include "call.h"
#include "nsp/base/json.h"

namespace nsp {
namespace {

TEST(Models, AreListedAsTableAndJson) {
  const Outcome table = call({"models"});
  EXPECT_EQ(table.code, 0);
  for (const std::string name : {"qwen3-30b-a3b", "qwen3-235b-a22b", "llama3-8b", "tiny"}) {
    expect_contains(table.out, name);
  }
  const Json json = Json::parse(call({"models", "--json", "-"}).out);
  EXPECT_EQ(json.size(), 4U);
  EXPECT_EQ(json[0]["kv_heads"], 4);
}

TEST(Clusters, AreListedAsTableAndJson) {
  const Outcome table = call({"clusters"});
  EXPECT_EQ(table.code, 0);
  for (const std::string name : {"h200", "h800", "a100", "two-h200", "cpu-gloo"}) {
    expect_contains(table.out, name);
  }
  EXPECT_GE(Json::parse(call({"clusters", "--json", "-"}).out).size(), 6U);
}

TEST(CommandLine, HelpHasExamplesAndExitsWithZero) {
  for (const std::string name : {"plan", "explain", "check", "models", "clusters"}) {
    const Outcome help = call({name, "--help"});
    EXPECT_EQ(help.code, 0);
    expect_contains(help.out, "Example:");
    expect_contains(help.out, "--json");
  }
  expect_contains(call({"--help"}).out, "Exit codes: 0 done");
  EXPECT_EQ(call({"--version"}).code, 0);
}

TEST(CommandLine, WhatIsUnknownIsBadInput) {
  expect_bad_input({}, "a subcommand is required: plan, explain");
  expect_bad_input({"paln"}, "paln");
  expect_bad_input({"models", "--colour"}, "--colour");
  expect_bad_input({"plan", "--world", "4"}, "is required");
}

}  // namespace
}  // namespace nsp
