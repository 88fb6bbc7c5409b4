#include "nsp/planner/request.h"

#include <algorithm>
#include <charconv>

#include "nsp/base/error.h"
#include "nsp/plan/way.h"

namespace nsp {
namespace {

constexpr std::int32_t kMostRanks = 1 << 20;

struct Named {
  std::string_view name;
  PlannerKind kind;
  Balance balance = Balance::kCost;
  bool usp = false;
};

constexpr Named kPlanners[] = {{"nsp", PlannerKind::kNsp},
                               {"algorithm1", PlannerKind::kAlgorithm1},
                               {"nsp-2l", PlannerKind::kTwoLevel},
                               {"megatron-dcp", PlannerKind::kMegatron},
                               {"static", PlannerKind::kStatic},
                               {"static-tokens", PlannerKind::kStatic, Balance::kTokens},
                               {"static-usp", PlannerKind::kStatic, Balance::kCost, true}};

struct NamedBackends {
  std::string_view name;
  std::vector<Backend> backends;
};

const std::vector<NamedBackends>& named_backends() {
  static const std::vector<NamedBackends> names = {
      {"ulysses", {Backend::kUlysses}},
      {"gather", {Backend::kGather}},
      {"ring", {Backend::kRing}},
      {"usp-ring", {Backend::kUspRing}},
      {"usp-gather", {Backend::kUspGather}},
      {"usp", {Backend::kUspRing, Backend::kUspGather}},
      {"all",
       {Backend::kUlysses,
        Backend::kGather,
        Backend::kRing,
        Backend::kUspRing,
        Backend::kUspGather}}};
  return names;
}

std::string joined(const std::vector<std::int32_t>& values) {
  std::string text;
  for (const std::int32_t value : values) {
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return text;
}

void check_lengths(const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > kMaxTokens) {
      bad_input("lengths[" + std::to_string(i) + "]",
                lengths[i],
                "must be from 1 to " + std::to_string(kMaxTokens) + " tokens");
    }
    sum += lengths[i];
    if (sum > kMaxTokens) {
      bad_input(
          "lengths", "sum " + std::to_string(sum), "must be at most " + std::to_string(kMaxTokens));
    }
  }
}

void check_range(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) {
    bad_input(
        field, value, "must be from " + std::to_string(least) + " to " + std::to_string(most));
  }
}

// The largest degree, and one that is given, need a way: ulysses divides the heads, gather and ring
// do not care, usp needs several hosts.
void check_largest_degree(const PlanRequest& request,
                          const ModelShape& shape,
                          std::int32_t ranks_per_host) {
  const Choice choice = parse_planner(request);
  const std::vector<Backend> backends = backends_of(request, choice);
  std::vector<std::int32_t> allowed;
  const WayLimits limits{
      .heads = shape.heads, .ranks_per_host = ranks_per_host, .sp_max = request.sp_max};
  for (const Way& way : allowed_ways(limits, backends)) {
    if (allowed.empty() || allowed.back() != way.degree) {
      allowed.push_back(way.degree);
    }
  }
  if (allowed.back() != request.sp_max) {
    bad_input("sp_max",
              request.sp_max,
              "does not divide the " + std::to_string(shape.heads) + " query heads of " +
                  shape.name + "; allowed: " + joined(allowed));
  }
  if (choice.degree > 0 && std::ranges::find(allowed, choice.degree) == allowed.end()) {
    bad_input("planner",
              "'" + request.planner + "'",
              "cannot run at this degree; allowed: " + joined(allowed));
  }
}

void check_experts(const PlanRequest& request, const ModelShape& shape) {
  const bool power = request.ep >= 1 && (request.ep & (request.ep - 1)) == 0;
  if (!power || request.world % request.ep != 0) {
    bad_input("ep",
              request.ep,
              "must be a power of two that divides the world of " + std::to_string(request.world) +
                  " ranks");
  }
  if (request.ep > 1 && shape.experts == 0) {
    bad_input("ep", request.ep, "must be 1: " + shape.name + " has no experts");
  }
}

std::string too_long(const Sequence& sequence,
                     std::int32_t degree,
                     std::int64_t budget,
                     bool larger_degree) {
  const std::int64_t needed = (sequence.tokens + degree - 1) / degree;
  return "sequence " + std::to_string(sequence.index) + ", the longest, has " +
         std::to_string(sequence.tokens) + " tokens, but degree " + std::to_string(degree) +
         " x token_budget " + std::to_string(budget) + " holds " + std::to_string(degree * budget) +
         ": give a token_budget of " + std::to_string(needed) +
         (larger_degree ? ", a larger sp_max" : "") + ", or over_length skip or truncate";
}

[[noreturn]] void unknown_planner(const std::string& name) {
  std::string allowed;
  for (const std::string& one : planner_names()) {
    allowed += one + (one == "static-usp:K" ? "" : ", ");
  }
  bad_input("planner", "'" + name + "'", "must be one of " + allowed + " (K: a degree)");
}

}  // namespace

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const Named& named : kPlanners) {
    names.emplace_back(named.name);
  }
  for (const Named& named : kPlanners) {
    if (named.kind == PlannerKind::kStatic) {
      names.push_back(std::string(named.name) + ":K");
    }
  }
  return names;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const NamedBackends& named : named_backends()) {
    names.emplace_back(named.name);
  }
  return names;
}

std::vector<Backend> parse_backends(const PlanRequest& request) {
  std::vector<Backend> backends;
  for (const std::string& name : request.backends) {
    const auto named = std::ranges::find(named_backends(), name, &NamedBackends::name);
    if (named == named_backends().end()) {
      bad_input("backends",
                "'" + name + "'",
                "must be ulysses, gather, ring, usp-ring, usp-gather, usp or all");
    }
    backends.insert(backends.end(), named->backends.begin(), named->backends.end());
  }
  return backends;
}

std::vector<Backend> backends_of(const PlanRequest& request, const Choice& choice) {
  if (choice.kind == PlannerKind::kNsp) {
    return parse_backends(request);
  }
  return choice.usp ? std::vector{Backend::kUlysses, Backend::kUspRing}
                    : std::vector{Backend::kUlysses};
}

OverLength parse_over_length(const std::string& name) {
  if (name == "error") {
    return OverLength::kError;
  }
  if (name == "skip") {
    return OverLength::kSkip;
  }
  if (name == "truncate") {
    return OverLength::kTruncate;
  }
  bad_input("over_length", "'" + name + "'", "must be error, skip or truncate");
}

void check(const PlanRequest& request, const ModelShape& shape, std::int32_t ranks_per_host) {
  check_range("world", request.world, 1, kMostRanks);
  check_tree(request.world, request.sp_max);
  check_range("ranks_per_host", request.ranks_per_host, 0, request.world);
  if (request.ranks_per_host > 0 && request.world % request.ranks_per_host != 0) {
    bad_input("ranks_per_host",
              request.ranks_per_host,
              "must divide the world of " + std::to_string(request.world) + " ranks");
  }
  check_largest_degree(request, shape, ranks_per_host);
  check_experts(request, shape);
  check_range("token_budget", request.token_budget, 0, kMaxTokens);
  check_range("byte_budget", request.byte_budget, 0, INT64_MAX);
  check_range("prefix", request.prefix, 0, kMostRanks);
  check_range("beam", request.beam, 1, 1 << 16);
  if (request.effort != "fast" && request.effort != "default" && request.effort != "thorough") {
    bad_input("effort", "'" + request.effort + "'", "must be fast, default or thorough");
  }
  check_lengths(request.lengths);
}

Choice parse_planner(const PlanRequest& request) {
  const std::string& name = request.planner;
  const std::string base = name.substr(0, name.find(':'));
  const auto named = std::ranges::find(kPlanners, base, &Named::name);
  const bool given = base.size() < name.size();
  if (named == std::end(kPlanners) || (given && named->kind != PlannerKind::kStatic)) {
    unknown_planner(name);
  }
  Choice choice{.kind = named->kind, .balance = named->balance, .usp = named->usp};
  if (!given) {
    return choice;
  }
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + base.size() + 1, end, choice.degree);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    unknown_planner(name);
  }
  const std::vector<std::int32_t> all = degrees(request.sp_max);
  if (std::ranges::find(all, choice.degree) == all.end()) {
    bad_input("planner", "'" + name + "'", "the degree must be one of " + joined(all));
  }
  return choice;
}

std::int64_t token_budget(const PlanRequest& request) {
  if (request.token_budget > 0) {
    return request.token_budget;
  }
  std::int64_t sum = 0;
  for (const std::int64_t length : request.lengths) {
    sum += length;
  }
  const std::int64_t parts = 5 * std::int64_t{request.world};  // 1.2 = 6 / 5
  return std::max<std::int64_t>(1, (6 * sum + parts - 1) / parts);
}

Kept keep(const PlanRequest& request, std::int32_t degree, std::int64_t budget) {
  Kept kept;
  for (std::size_t i = 0; i < request.lengths.size(); ++i) {
    Sequence sequence{.index = static_cast<std::int64_t>(i), .tokens = request.lengths[i]};
    if ((sequence.tokens + degree - 1) / degree > budget) {
      if (request.over_length == OverLength::kError) {
        const auto longest = std::ranges::max_element(request.lengths) - request.lengths.begin();
        sequence = {.index = longest, .tokens = request.lengths[static_cast<std::size_t>(longest)]};
        kept.why_infeasible = too_long(sequence, degree, budget, request.world % (2 * degree) == 0);
        return kept;
      }
      const bool truncate = request.over_length == OverLength::kTruncate;
      kept.dropped.push_back({.sequence = sequence.index,
                              .tokens = sequence.tokens,
                              .kept = truncate ? degree * budget : 0,
                              .why = "longer than sp_max x token_budget"});
      if (!truncate) {
        continue;
      }
      sequence.tokens = degree * budget;
    }
    kept.sequences.push_back(sequence);
  }
  sort_longest_first(kept.sequences);
  return kept;
}

}  // namespace nsp
