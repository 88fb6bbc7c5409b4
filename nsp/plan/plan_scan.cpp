// One pass over the text, field by field in the writer's order. The scan itself is lenient; what
// makes it safe is the last step: the plan found must write the very same bytes.
#include "nsp/plan/plan_scan.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <functional>
#include <span>

#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_names.h"

namespace nsp {
namespace {

// After the first mismatch nothing is read any more, and good() is false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool good() const { return good_; }
  bool done() const { return good_ && at_ == end_; }

  // Passes `literal` if it stands here.
  bool next_is(std::string_view literal) {
    if (!good_ || !std::string_view(at_, end_).starts_with(literal)) {
      return false;
    }
    at_ += literal.size();
    return true;
  }
  Scanner& operator>>(std::string_view literal) {
    good_ = next_is(literal);
    return *this;
  }
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  Scanner& operator>>(Number& value) {
    const auto [end, error] =
        good_ ? std::from_chars(at_, end_, value) : std::from_chars_result{at_, std::errc{1}};
    at_ = end;
    good_ = error == std::errc{} && (std::floating_point<Number> || !(value < 0));
    return *this;
  }
  // A string between quotes; one with an escape or beyond ASCII is left to the strict reader.
  std::string_view text() {
    *this >> "\"";
    const char* const begin = at_;
    while (good_ && at_ != end_ && *at_ != '"') {
      good_ = *at_ >= ' ' && *at_ < '\x7f' && *at_ != '\\';
      ++at_;
    }
    const std::string_view found(begin, at_);
    *this >> "\"";
    return found;
  }
  template <class Enum>
  void choose(std::span<const std::string_view> names, Enum& value, std::string_view word) {
    const auto it = std::ranges::find(names, word);
    good_ = good_ && it != names.end();
    value = good_ ? static_cast<Enum>(it - names.begin()) : Enum{};
  }
  // Elements between `open` and `close`, each read by `read`.
  template <class Read>
  void list(std::string_view open, std::string_view close, Read read) {
    *this >> open;
    if (next_is(close)) {
      return;
    }
    do {
      read();
    } while (next_is(","));
    *this >> close;
  }

 private:
  const char* at_;
  const char* end_;
  bool good_ = true;
};

void read(Scanner& from, Placement& placement) {
  from >> R"({"backend":)";
  from.choose(kBackends, placement.backend, from.text());
  from >> R"(,"degree":)" >> placement.node.degree;
  from >> R"(,"first_rank":)" >> placement.node.first_rank >> R"(,"mark":)";
  from.choose(kMarks, placement.mark, from.text());
  from >> R"(,"sequence":)" >> placement.sequence >> R"(,"tokens":)" >> placement.tokens;
  from >> R"(,"ulysses_degree":)" >> placement.ulysses_degree >> "}";
}

// "prologue:8" or "prologue:8:short", all of it inside the quotes.
void read(Scanner& from, Issue& issue) {
  const std::string_view text = from.text();
  const std::size_t colon = std::min(text.find(':'), text.size());
  from.choose(kPhases, issue.phase, text.substr(0, colon));
  Scanner degree(text.substr(colon));
  degree >> ":" >> issue.degree;
  issue.wave = degree.next_is(kShortWave) ? Wave::kShort : Wave::kLong;
  if (!degree.done()) {
    from >> "a phase and a degree";
  }
}

void read(Scanner& from, Schedule& schedule) {
  from >> "{";
  if (from.next_is(R"("cuts":)")) {
    from.list("{", "}", [&] {
      LevelCut& cut = schedule.cuts.emplace_back();
      from >> "\"" >> cut.degree >> "\":" >> cut.tokens;
    });
    std::ranges::sort(schedule.cuts, std::greater<>{}, &LevelCut::degree);
    from >> ",";
  }
  from >> R"("leaf_first":)";
  from.list("[", "]", [&] { from >> schedule.leaf_first.emplace_back(); });
  from >> R"(,"order":)";
  from.list("[", "]", [&] { read(from, schedule.order.emplace_back()); });
  from >> R"(,"transports":)";
  from.list("{", "}", [&] {
    LevelTransport& level = schedule.transports.emplace_back();
    from >> "\"" >> level.degree >> "\":";
    from.choose(kTransports, level.transport, from.text());
  });
  std::ranges::sort(schedule.transports, std::greater<>{}, &LevelTransport::degree);
  from >> "}";
}

void read(Scanner& from, Round& round) {
  from >> R"({"placements":)";
  from.list("[", "]", [&] { read(from, round.placements.emplace_back()); });
  from >> R"(,"schedule":)";
  read(from, round.schedule);
  from >> "}";
}

void read(Scanner& from, Dropped& dropped) {
  from >> R"({"kept":)" >> dropped.kept >> R"(,"sequence":)" >> dropped.sequence;
  from >> R"(,"tokens":)" >> dropped.tokens >> R"(,"why":)";
  dropped.why = from.text();
  from >> "}";
}

void read(Scanner& from, Predicted& predicted) {
  from >> R"({"backward":)" >> predicted.backward >> R"(,"bytes_max":)" >> predicted.bytes_max;
  from >> R"(,"forward":)" >> predicted.forward >> R"(,"seconds":)" >> predicted.seconds;
  from >> R"(,"tokens_max":)" >> predicted.tokens_max >> "}";
}

void read(Scanner& from, Plan& plan) {
  from >> R"({"bound":{"seconds":)" >> plan.bound_seconds >> R"(},"dropped":)";
  from.list("[", "]", [&] { read(from, plan.dropped.emplace_back()); });
  from >> R"(,"effort":)";
  plan.effort = from.text();
  from >> R"(,"feasible":)";
  plan.feasible = from.next_is("true");
  from >> (plan.feasible ? "" : "false") >> R"(,"format":")" >> kFormat >> R"(","hash":)";
  plan.hash = from.text();
  from >> R"(,"model_hash":)";
  plan.model_hash = from.text();
  from >> R"(,"num_sequences":)" >> plan.num_sequences >> R"(,"num_tokens":)" >> plan.num_tokens;
  from >> R"(,"planner":)";
  plan.planner = from.text();
  from >> R"(,"planning_ms":)" >> plan.planning_ms >> R"(,"predicted":)";
  read(from, plan.predicted);
  from >> R"(,"profile_hash":)";
  plan.profile_hash = from.text();
  from >> R"(,"ranks_per_host":)" >> plan.ranks_per_host >> R"(,"rounds":)";
  from.list("[", "]", [&] { read(from, plan.rounds.emplace_back()); });
  from >> R"(,"sp_max":)" >> plan.sp_max >> R"(,"token_budget":)" >> plan.token_budget;
  from >> R"(,"world":)" >> plan.world >> "}";
}

}  // namespace

std::optional<Plan> scan_plan(std::string_view text) {
  Scanner from(text);
  Plan plan;
  read(from, plan);
  if (!from.done() || json_text(plan) != text) {
    return std::nullopt;
  }
  return plan;
}

}  // namespace nsp
