#include "nsp/sim/trace.h"

#include <zlib.h>

#include <gtest/gtest.h>

#include "nsp/base/json.h"
#include "nsp/plan/make_plan.h"
#include "nsp/sim/simulate.h"
#include "nsp/sim/timeline_text.h"
#include "tests/cost/simple_profile.h"
#include "tests/temporary.h"

namespace nsp {
namespace {

Timeline small_timeline() {
  ModelShape shape = simple_model();
  shape.layers = 1;
  const Plan plan = make_plan({.world = 2, .sp_max = 2, .ranks_per_host = 2},
                              {{place(0, 256, {0, 2}), place(1, 128, {0, 1})}});
  return simulate(plan, shape, simple_profile(), {.fsdp = false, .spans = true});
}

TEST(Trace, IsJsonWithAnEventForEverySpan) {
  const Timeline timeline = small_timeline();
  const Json json = parse_json(trace_json(timeline), "trace");
  std::size_t spans = 0;
  for (const Json& event : json["traceEvents"]) {
    spans += event["ph"] == "X";
  }
  EXPECT_EQ(spans, timeline.spans.size());
  const Json& first = json["traceEvents"][8];  // after two ranks of a process and three queues
  EXPECT_EQ(first["name"], "attention forward 1");
  EXPECT_EQ(first["pid"], 0);
  EXPECT_EQ(first["dur"], 4.0);
  EXPECT_EQ(json["traceEvents"][9]["name"], "prologue forward 2");
  EXPECT_EQ(json["traceEvents"][9]["args"]["backend"], "ulysses");
}

TEST(Trace, CompressedOrNotItIsTheSame) {
  const Timeline timeline = small_timeline();
  const std::string plain = temporary_path("trace.json");
  const std::string packed = temporary_path("trace.json.gz");
  save_trace(timeline, plain);
  save_trace(timeline, packed);
  std::string text(trace_json(timeline).size() + 1, '\0');
  const gzFile file = gzopen(packed.c_str(), "rb");
  text.resize(
      static_cast<std::size_t>(gzread(file, text.data(), static_cast<unsigned>(text.size()))));
  gzclose(file);
  EXPECT_EQ(text, read_file(plain));
  EXPECT_EQ(text, trace_json(timeline));
}

TEST(TimelineText, TableAndJsonHoldTheParts) {
  const Timeline timeline = small_timeline();
  const std::string table = summary(timeline);
  for (const char* part : {"step 0.0000 s", "attention forward", "waiting", "memory"}) {
    EXPECT_NE(table.find(part), std::string::npos) << table;
  }
  const Json json = to_json(timeline);
  EXPECT_DOUBLE_EQ(json["step_seconds"], 31546e-9);
  EXPECT_DOUBLE_EQ(json["slowest"]["attention_forward"], 10000e-9);
  EXPECT_EQ(json["slowest_rank"], 0);
}

}  // namespace
}  // namespace nsp
