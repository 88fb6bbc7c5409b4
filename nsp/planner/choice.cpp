#include "nsp/planner/choice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "nsp/base/error.h"
#include "nsp/plan/way.h"
#include "nsp/planner/milp.h"

namespace nsp {
namespace {

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
                               {"flexsp", PlannerKind::kFlexSp},
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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

std::string joined(const std::vector<std::int32_t>& degrees) {
  std::vector<std::string> words;
  for (const std::int32_t degree : degrees) {
    words.push_back(std::to_string(degree));
  }
  return joined(words);
}

[[noreturn]] void unknown_planner(const std::string& name) {
  bad_input(
      "planner", "'" + name + "'", "must be one of " + joined(planner_names()) + " (K: a degree)");
}

// `name` may have a degree behind it.
const Named& find_planner(const std::string& name) {
  const auto named = std::ranges::find(kPlanners, name.substr(0, name.find(':')), &Named::name);
  if (named == std::end(kPlanners)) {
    unknown_planner(name);
  }
  return *named;
}

// `degree`: none is given.
struct Spelled {
  Named named;
  std::optional<std::int32_t> degree;
};

Spelled spelled(const std::string& name) {
  Spelled found{.named = find_planner(name), .degree = {}};
  if (name.size() == found.named.name.size()) {
    return found;
  }
  const char* const end = name.data() + name.size();
  const auto parsed =
      std::from_chars(name.data() + found.named.name.size() + 1, end, found.degree.emplace());
  if (found.named.kind != PlannerKind::kStatic || parsed.ec != std::errc{} || parsed.ptr != end) {
    unknown_planner(name);
  }
  return found;
}

// Why a degree has no way.
std::string why_none(const ModelShape& shape,
                     std::int32_t ranks_per_host,
                     std::int32_t degree,
                     const std::vector<Backend>& backends) {
  const bool ulysses = std::ranges::count(backends, Backend::kUlysses) > 0;
  if (!ulysses && inside_host(degree, ranks_per_host)) {
    return "is not more than the " + std::to_string(ranks_per_host) +
           " ranks of a host, and usp spans hosts: add another backend for smaller degrees";
  }
  if (!ulysses) {
    return "has no way: usp needs several heads to split inside a host";
  }
  return "does not divide the " + std::to_string(shape.heads) + " query heads of " + shape.name;
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

std::vector<std::string> backends_used(const std::vector<std::string>& planners) {
  const bool usp = std::ranges::any_of(
      planners, [](const std::string& planner) { return find_planner(planner).usp; });
  return usp ? std::vector<std::string>{"ulysses", "usp-ring"}
             : std::vector<std::string>{"ulysses"};
}

void check_names(const PlanRequest& request) {
  spelled(request.planner);
  parse_backends(request);
}

std::vector<Backend> parse_backends(const PlanRequest& request) {
  if (request.backends.empty()) {
    bad_input("backends", "none", "must be some of " + joined(backend_names()));
  }
  std::vector<Backend> backends;
  for (const std::string& name : request.backends) {
    const auto named = std::ranges::find(named_backends(), name, &NamedBackends::name);
    if (named == named_backends().end()) {
      bad_input("backends", "'" + name + "'", "must be one of " + joined(backend_names()));
    }
    backends.insert(backends.end(), named->backends.begin(), named->backends.end());
  }
  return backends;
}

std::vector<Backend> backends_of(const PlanRequest& request, const Choice& choice) {
  if (choice.kind == PlannerKind::kNsp) {
    return parse_backends(request);
  }
  if (request.backends != PlanRequest{}.backends) {
    bad_input(
        "backends",
        joined(request.backends),
        "planner " + request.planner + " has its own; leave backends out, or take planner nsp");
  }
  return choice.usp ? std::vector{Backend::kUlysses, Backend::kUspRing}
                    : std::vector{Backend::kUlysses};
}

Choice parse_planner(const PlanRequest& request) {
  const auto [named, degree] = spelled(request.planner);
  if (named.kind == PlannerKind::kFlexSp) {
    require_milp();
  }
  Choice choice{.kind = named.kind, .balance = named.balance, .usp = named.usp};
  if (!degree) {
    return choice;
  }
  choice.degree = *degree;
  const std::vector<std::int32_t> all = degrees(request.sp_max);
  if (std::ranges::find(all, choice.degree) == all.end()) {
    bad_input("planner", "'" + request.planner + "'", "the degree must be one of " + joined(all));
  }
  return choice;
}

void check_degrees(const PlanRequest& request,
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
              why_none(shape, ranks_per_host, request.sp_max, backends) +
                  "; allowed: " + joined(allowed));
  }
  if (choice.degree > 0 && std::ranges::find(allowed, choice.degree) == allowed.end()) {
    bad_input("planner",
              "'" + request.planner + "'",
              "cannot run at this degree; allowed: " + joined(allowed));
  }
}

}  // namespace nsp
