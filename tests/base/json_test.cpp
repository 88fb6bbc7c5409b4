#include "nsp/base/json.h"

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "tests/temporary.h"

namespace nsp {
namespace {

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no BadInput";
}

TEST(Json, BrokenTextNamesItsSource) {
  EXPECT_NE(message([] { parse_json("{\"a\":", "plan.json"); }).find("plan.json: not valid JSON"),
            std::string::npos);
}

TEST(Json, UnknownMissingAndWronglyTypedFieldsAreNamed) {
  const Json object = {{"a", 1}, {"b", "x"}};
  EXPECT_EQ(message([&] { JsonReader(object, "plan", {"a"}); }), "plan: unknown field 'b'");
  const JsonReader reader(object, "plan", {"a", "b", "c"});
  EXPECT_EQ(message([&] { reader.integer("c"); }), "plan: field 'c' is missing");
  EXPECT_EQ(message([&] { reader.integer("b"); }), "plan.b: must be an integer, not \"x\"");
  EXPECT_EQ(message([&] { reader.text("a"); }), "plan.a: must be a string, not 1");
  EXPECT_EQ(message([&] { reader.boolean("a"); }), "plan.a: must be true or false, not 1");
  EXPECT_EQ(message([&] { reader.number("b"); }), "plan.b: must be a number, not \"x\"");
  EXPECT_EQ(message([&] { reader.array("a"); }), "plan.a: must be an array");
  EXPECT_EQ(reader.integer("a"), 1);
  EXPECT_EQ(message([] { JsonReader(Json::array(), "plan", {}); }), "plan: must be a JSON object");
}

TEST(Json, FilesComeBackAsWritten) {
  const std::string path = temporary_path("file.json");
  write_file(path, "{\"a\": [1, 2]}");
  EXPECT_EQ(load_json(path), (Json{{"a", {1, 2}}}));
  std::filesystem::remove(path);
  EXPECT_NE(message([&] { read_file(path); }).find("cannot be read"), std::string::npos);
  EXPECT_THROW(write_file("/nonexistent/folder/file", "x"), Error);
}

TEST(Json, DeepNestingAndNumbersThatWouldWrapAreRefused) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(message([&] { parse_json(deep, "plan.json"); }).substr(0, 42),
            "plan.json: nested deeper than 64 levels; g");
  const Json huge = parse_json(R"({"a": 18446744073709551615})", "text");
  const JsonReader reader(huge, "text", {"a"});
  EXPECT_EQ(message([&] { reader.integer("a"); }),
            "text.a: must be below 2^63, not 18446744073709551615");
}

}  // namespace
TEST(Json, AFieldThatStandsTwiceIsNamed) {
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]})", "text")["a"]["b"], 1);
  try {
    parse_json(R"({"a": {"b": 1, "b": 2}})", "plan.json");
    FAIL() << "not refused";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "plan.json: field 'b' stands twice; keep one");
  }
}

}  // namespace nsp
