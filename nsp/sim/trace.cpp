#include "nsp/sim/trace.h"

#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <zlib.h>

#include "nsp/base/error.h"
#include "nsp/base/json.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

std::string_view activity_name(const Span& span) {
  switch (span.activity) {
    case Activity::kAttentionForward:
      return "attention forward";
    case Activity::kAttentionBackward:
      return "attention backward";
    case Activity::kRecompute:
      return "attention recompute";
    case Activity::kDense:
      return span.backward ? "dense backward" : "dense forward";
    case Activity::kHead:
      return "head";
    case Activity::kOptimizer:
      return "optimizer";
    case Activity::kGather:
      return "gather";
    case Activity::kScatter:
      return "scatter";
    case Activity::kExchange:
    case Activity::kBegin:
      break;
  }
  const bool prologue = span.phase == Phase::kPrologue;
  return span.backward ? (prologue ? "prologue backward" : "epilogue backward")
                       : (prologue ? "prologue forward" : "epilogue forward");
}

std::string span_name(const Span& span) {
  return span.degree > 0 ? fmt::format("{} {}", activity_name(span), span.degree)
                         : std::string(activity_name(span));
}

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

void name_queues(const Timeline& timeline, std::string& out) {
  auto to = std::back_inserter(out);
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    fmt::format_to(
        to,
        "{{\"ph\":\"M\",\"pid\":{0},\"name\":\"process_name\",\"args\":{{\"name\":\"rank "
        "{0}\"}}}},\n",
        rank);
    int tid = 0;
    for (const char* queue : {"compute", "communication", "FSDP"}) {
      fmt::format_to(to,
                     "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{"
                     "\"name\":\"{}\"}}}},\n",
                     rank,
                     tid++,
                     queue);
    }
  }
}

void append(const Span& span, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(
      to,
      "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"ts\":{},\"dur\":{},\"args\":{{"
      "\"round\":{},\"layer\":{}",
      span.rank,
      static_cast<int>(span.queue),
      span_name(span),
      microseconds(span.begin),
      microseconds(span.end - span.begin),
      span.round,
      span.layer);
  if (span.degree > 0) {
    fmt::format_to(
        to, ",\"degree\":{},\"backend\":\"{}\"", span.degree, std::string(name(span.backend)));
  }
  out += "}}";
}

void save_compressed(const std::string& text, const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "wb6");
  if (file == nullptr) {
    throw Error(path + ": cannot be written");
  }
  bool written = true;
  constexpr std::size_t kPart = std::size_t{1} << 20;
  for (std::size_t at = 0; at < text.size(); at += kPart) {
    const std::string_view part = std::string_view(text).substr(at, kPart);
    written = written && gzwrite(file, part.data(), static_cast<unsigned>(part.size())) ==
                             static_cast<int>(part.size());
  }
  if (gzclose(file) != Z_OK || !written) {
    throw Error(path + ": cannot be written");
  }
}

}  // namespace

std::string trace_json(const Timeline& timeline) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  name_queues(timeline, out);
  for (const Span& span : timeline.spans) {
    append(span, out);
    out += ",\n";
  }
  out.erase(out.size() - 2);
  out += "\n]}\n";
  return out;
}

void save_trace(const Timeline& timeline, const std::string& path) {
  const std::string text = trace_json(timeline);
  if (path.ends_with(".gz")) {
    save_compressed(text, path);
  } else {
    write_file(path, text);
  }
}

}  // namespace nsp
