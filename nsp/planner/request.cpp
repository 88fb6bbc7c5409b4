#include "nsp/planner/request.h"

#include <algorithm>
#include <charconv>

#include "nsp/base/error.h"
#include "nsp/planner/milp.h"

namespace nsp {
namespace {

constexpr std::int32_t kMostRanks = 1 << 20;
constexpr std::string_view kStaticPrefix = "static:";

struct Named {
  std::string_view name;
  PlannerKind kind;
};

constexpr Named kPlanners[] = {{"nsp", PlannerKind::kNsp},
                               {"algorithm1", PlannerKind::kAlgorithm1},
                               {"nsp-2l", PlannerKind::kTwoLevel},
                               {"megatron-dcp", PlannerKind::kMegatron},
                               {"flexsp", PlannerKind::kFlexSp},
                               {"static", PlannerKind::kStatic}};

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

}  // namespace

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const Named& named : kPlanners) {
    names.emplace_back(named.name);
  }
  names.emplace_back("static:K");
  return names;
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

void check(const PlanRequest& request, const ModelShape& shape) {
  check_range("world", request.world, 1, kMostRanks);
  check_tree(request.world, request.sp_max);
  const std::vector<std::int32_t> allowed = allowed_degrees(shape.heads, request.sp_max);
  if (allowed.back() != request.sp_max) {
    bad_input("sp_max",
              request.sp_max,
              "does not divide the " + std::to_string(shape.heads) + " query heads of " +
                  shape.name + "; allowed: " + joined(allowed));
  }
  check_range("ranks_per_host", request.ranks_per_host, 0, request.world);
  if (request.ranks_per_host > 0 && request.world % request.ranks_per_host != 0) {
    bad_input("ranks_per_host",
              request.ranks_per_host,
              "must divide the world of " + std::to_string(request.world) + " ranks");
  }
  check_range("token_budget", request.token_budget, 0, kMaxTokens);
  check_range("prefix", request.prefix, 0, kMostRanks);
  check_range("beam", request.beam, 1, 1 << 16);
  if (request.effort != "fast" && request.effort != "default" && request.effort != "thorough") {
    bad_input("effort", "'" + request.effort + "'", "must be fast, default or thorough");
  }
  check_lengths(request.lengths);
}

Choice parse_planner(const PlanRequest& request) {
  const std::string& name = request.planner;
  for (const Named& named : kPlanners) {
    if (name == named.name) {
      if (named.kind == PlannerKind::kFlexSp) {
        require_milp();
      }
      return {.kind = named.kind};
    }
  }
  Choice choice{.kind = PlannerKind::kStatic};
  const char* const end = name.data() + name.size();
  const auto parsed = name.starts_with(kStaticPrefix)
                          ? std::from_chars(name.data() + kStaticPrefix.size(), end, choice.degree)
                          : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    std::string allowed;
    for (const Named& named : kPlanners) {
      allowed += std::string(named.name) + ", ";
    }
    bad_input("planner", "'" + name + "'", "must be " + allowed + "or static:K (K: a degree)");
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
