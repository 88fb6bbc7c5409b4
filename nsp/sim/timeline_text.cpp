#include "nsp/sim/timeline_text.h"

#include <fmt/format.h>
#include <iterator>

namespace nsp {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Part {
  const char* field;
  const char* title;
  std::int64_t Breakdown::* nanoseconds;
};

constexpr Part kParts[] = {
    {"attention_forward", "attention forward", &Breakdown::attention_forward},
    {"attention_backward", "attention backward", &Breakdown::attention_backward},
    {"recompute", "attention recompute", &Breakdown::recompute},
    {"dense", "dense", &Breakdown::dense},
    {"head", "LM head", &Breakdown::head},
    {"optimizer", "optimizer", &Breakdown::optimizer},
    {"exposed_exchange", "exposed SP communication", &Breakdown::exposed_exchange},
    {"exposed_fsdp", "exposed FSDP communication", &Breakdown::exposed_fsdp},
    {"waiting", "waiting for other ranks", &Breakdown::waiting}};

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

Json to_json(const Breakdown& breakdown) {
  Json json;
  for (const Part& part : kParts) {
    json[part.field] = seconds(breakdown.*part.nanoseconds);
  }
  return json;
}

}  // namespace

std::string summary(const Timeline& timeline) {
  if (timeline.step == 0) {
    return "step 0 s: the plan has no rounds, or nothing in it takes time\n";
  }
  const Breakdown mean = timeline.mean();
  const Breakdown& slowest = timeline.ranks[static_cast<std::size_t>(timeline.slowest)];
  std::string out = fmt::format("step {:.4f} s\n\n", seconds(timeline.step));
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "{:<28} {:>12} {:>7} {:>14} {:>7}\n",
                 "seconds of a rank",
                 "mean",
                 "share",
                 fmt::format("slowest ({})", timeline.slowest),
                 "share");
  const double percent = 100 / seconds(timeline.step);
  for (const Part& part : kParts) {
    const double all = seconds(mean.*part.nanoseconds);
    const double one = seconds(slowest.*part.nanoseconds);
    fmt::format_to(to,
                   "{:<28} {:>12.4f} {:>6.1f}% {:>14.4f} {:>6.1f}%\n",
                   part.title,
                   all,
                   all * percent,
                   one,
                   one * percent);
  }
  fmt::format_to(to,
                 "\nmemory beside model state, estimated: {:.1f} GiB on rank {}\n",
                 static_cast<double>(timeline.memory_bytes) / kGiB,
                 timeline.memory_rank);
  return out;
}

Json to_json(const Timeline& timeline) {
  Json json = {{"step_seconds", seconds(timeline.step)},
               {"mean", to_json(timeline.mean())},
               {"memory_bytes", timeline.memory_bytes},
               {"memory_rank", timeline.memory_rank},
               {"slowest_rank", timeline.slowest}};
  if (!timeline.ranks.empty()) {
    json["slowest"] = to_json(timeline.ranks[static_cast<std::size_t>(timeline.slowest)]);
  }
  return json;
}

}  // namespace nsp
