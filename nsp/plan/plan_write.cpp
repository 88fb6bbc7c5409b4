// Writing nsp-plan/1 straight into one buffer: a document tree of thousands of placements costs
// twenty times its text. Fields stand in sorted order, as the tree's writer would put them.
#include <array>
#include <charconv>
#include <concepts>
#include <map>

#include "nsp/base/hash.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_names.h"

namespace nsp {
namespace {

class Writer {
 public:
  explicit Writer(std::size_t bytes) { text_.reserve(bytes); }

  // A piece of JSON as it stands: braces and names of fields.
  Writer& operator<<(std::string_view json) {
    text_ += json;
    return *this;
  }
  Writer& operator<<(std::integral auto value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_.append(digits.data(), end);
    return *this;
  }
  // Numbers with a point and free text are few: the library's own writer decides their form.
  Writer& value(const Json& scalar) { return *this << std::string_view(scalar.dump()); }

  template <class Values, class Write>
  Writer& array(const Values& values, Write write) {
    text_ += '[';
    bool first = true;
    for (const auto& one : values) {
      text_ += first ? "" : ",";
      first = false;
      write(one);
    }
    text_ += ']';
    return *this;
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write(Writer& to, const Placement& placement) {
  to << R"({"backend":")" << name(placement.backend)      //
     << R"(","degree":)" << placement.node.degree         //
     << R"(,"first_rank":)" << placement.node.first_rank  //
     << R"(,"mark":")" << name(placement.mark)            //
     << R"(","sequence":)" << placement.sequence          //
     << R"(,"tokens":)" << placement.tokens               //
     << R"(,"ulysses_degree":)" << placement.ulysses_degree << "}";
}

void write(Writer& to, const std::vector<LevelTransport>& transports) {
  std::map<std::string, Transport> sorted;  // by the digits, as text
  for (const LevelTransport& level : transports) {
    sorted[std::to_string(level.degree)] = level.transport;
  }
  std::string_view comma;
  to << "{";
  for (const auto& [degree, transport] : sorted) {
    to << comma << "\"" << degree << R"(":")" << name(transport) << "\"";
    comma = ",";
  }
  to << "}";
}

// Nothing of no cuts.
void write(Writer& to, const std::vector<LevelCut>& cuts) {
  std::map<std::string, std::int64_t> sorted;
  for (const LevelCut& cut : cuts) {
    sorted[std::to_string(cut.degree)] = cut.tokens;
  }
  std::string_view before = R"("cuts":{)";
  for (const auto& [degree, tokens] : sorted) {
    to << before << "\"" << degree << "\":" << tokens;
    before = ",";
  }
  to << (cuts.empty() ? "" : "},");
}

void write(Writer& to, const Round& round) {
  to << R"({"placements":)";
  to.array(round.placements, [&](const Placement& placement) { write(to, placement); });
  to << R"(,"schedule":{)";
  write(to, round.schedule.cuts);
  to << R"("leaf_first":)";
  to.array(round.schedule.leaf_first, [&](std::int32_t count) { to << count; });
  to << R"(,"order":)";
  to.array(round.schedule.order, [&](const Issue& issue) {
    to << "\"" << name(issue.phase) << ":" << issue.degree
       << (issue.wave == Wave::kShort ? kShortWave : "") << "\"";
  });
  to << R"(,"transports":)";
  write(to, round.schedule.transports);
  to << "}}";
}

void write(Writer& to, const Dropped& dropped) {
  to << R"({"kept":)" << dropped.kept << R"(,"sequence":)" << dropped.sequence << R"(,"tokens":)"
     << dropped.tokens << R"(,"why":)";
  to.value(dropped.why) << "}";
}

void write(Writer& to, const Predicted& predicted) {
  to << R"("predicted":{"backward":)";
  to.value(predicted.backward) << R"(,"bytes_max":)" << predicted.bytes_max << R"(,"forward":)";
  to.value(predicted.forward) << R"(,"seconds":)";
  to.value(predicted.seconds) << R"(,"tokens_max":)" << predicted.tokens_max << "},";
}

// `all` false: without what the hash does not cover.
std::string written(const Plan& plan, bool all) {
  std::size_t placements = 0;
  for (const Round& round : plan.rounds) {
    placements += round.placements.size() + round.schedule.leaf_first.size() / 8;
  }
  Writer to(1024 + 128 * placements);
  to << "{";
  if (all) {
    to << R"("bound":{"seconds":)";
    to.value(plan.bound_seconds) << "},";
  }
  to << R"("dropped":)";
  to.array(plan.dropped, [&](const Dropped& dropped) { write(to, dropped); });
  to << R"(,"effort":)";
  to.value(plan.effort) << R"(,"feasible":)" << (plan.feasible ? "true" : "false");
  to << R"(,"format":")" << kFormat << "\",";
  if (all) {
    to << R"("hash":)";
    to.value(plan.hash) << ",";
  }
  to << R"("model_hash":)";
  to.value(plan.model_hash) << R"(,"num_sequences":)" << plan.num_sequences;
  to << R"(,"num_tokens":)" << plan.num_tokens << R"(,"planner":)";
  to.value(plan.planner) << ",";
  if (all) {
    to << R"("planning_ms":)";
    to.value(plan.planning_ms) << ",";
    write(to, plan.predicted);
  }
  to << R"("profile_hash":)";
  to.value(plan.profile_hash) << R"(,"ranks_per_host":)" << plan.ranks_per_host << R"(,"rounds":)";
  to.array(plan.rounds, [&](const Round& round) { write(to, round); });
  to << R"(,"sp_max":)" << plan.sp_max << R"(,"token_budget":)" << plan.token_budget;
  to << R"(,"world":)" << plan.world << "}";
  return to.take();
}

}  // namespace

std::string json_text(const Plan& plan) {
  return written(plan, true);
}

std::string plan_hash(const Plan& plan) {
  return hash_hex(written(plan, false));
}

}  // namespace nsp
