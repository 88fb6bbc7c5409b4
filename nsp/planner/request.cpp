#include "nsp/planner/request.h"

#include <algorithm>

#include "nsp/base/error.h"
#include "nsp/cost/evaluate.h"
#include "nsp/planner/choice.h"

namespace nsp {
namespace {

constexpr std::int32_t kMostRanks = 1 << 20;

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
  check_degrees(request, shape, ranks_per_host);
  check_ep(request.ep, request.world, shape);
  check_range("token_budget", request.token_budget, 0, kMaxTokens);
  check_range("byte_budget", request.byte_budget, 0, INT64_MAX);
  check_range("host_budget", request.host_budget, 0, INT64_MAX);
  check_range("prefix", request.prefix, 0, kMostRanks);
  check_range("beam", request.beam, 1, 1 << 16);
  if (request.effort != "fast" && request.effort != "default" && request.effort != "thorough") {
    bad_input("effort", "'" + request.effort + "'", "must be fast, default or thorough");
  }
  check_lengths(request.lengths);
}

void check_host(const PlanRequest& request, const Profile& profile) {
  if (request.host_budget > 0 && profile.host_bytes_per_second == 0) {
    bad_input("host_budget",
              request.host_budget,
              "the profile of " + profile.model + " on " + profile.cluster +
                  " does not know how fast host memory is reached; add host_bytes_per_second to "
                  "it, or give 0");
  }
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
  return std::clamp<std::int64_t>((6 * sum + parts - 1) / parts, 1, kMaxTokens);
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
