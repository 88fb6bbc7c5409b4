#include "nsp/plan/plan_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "nsp/plan/explain.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

struct Group {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t shortest = 0;
  std::int64_t longest = 0;
  std::map<std::int32_t, std::int64_t> nodes;  // first rank -> sequences

  void add(const Placement& placement) {
    shortest = sequences == 0 ? placement.tokens : std::min(shortest, placement.tokens);
    longest = std::max(longest, placement.tokens);
    ++sequences;
    tokens += placement.tokens;
    ++nodes[placement.node.first_rank];
  }
};

std::string counted(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

double percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

double percent(std::int64_t part, std::int64_t whole) {
  return percent(static_cast<double>(part), static_cast<double>(whole));
}

void append_settings(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "plan {} by {}{}: {}\n",
                 plan.hash,
                 plan.planner,
                 plan.effort.empty() ? "" : " (" + plan.effort + ")",
                 plan.feasible ? "feasible" : "NOT FEASIBLE, do not execute");
  fmt::format_to(to,
                 "world {} ({} a host), sp_max {}, token budget {} a rank\n",
                 counted(plan.world, "rank"),
                 plan.ranks_per_host,
                 plan.sp_max,
                 plan.token_budget);
  fmt::format_to(to,
                 "{}, {}, {}\n",
                 counted(plan.num_sequences, "sequence"),
                 counted(plan.num_tokens, "token"),
                 counted(std::ssize(plan.rounds), "round"));
}

void append_levels(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "\n{:>5} {:>7} {:>6} {:>10} {:>12} {:>7} {:>9} {:>9}\n",
                 "round",
                 "degree",
                 "nodes",
                 "sequences",
                 "tokens",
                 "share",
                 "shortest",
                 "longest");
  for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
    std::map<std::int32_t, Group, std::greater<>> groups;
    for (const Placement& placement : plan.rounds[r].placements) {
      groups[placement.node.degree].add(placement);
    }
    for (const auto& [degree, group] : groups) {
      fmt::format_to(to,
                     "{:>5} {:>7} {:>6} {:>10} {:>12} {:>6.1f}% {:>9} {:>9}\n",
                     r,
                     degree,
                     group.nodes.size(),
                     group.sequences,
                     group.tokens,
                     percent(group.tokens, plan.num_tokens),
                     group.shortest,
                     group.longest);
    }
  }
}

void append_tokens(const Plan& plan, std::string& out) {
  for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
    const std::vector<std::int64_t> tokens = rank_tokens(plan.rounds[r], plan.world);
    const auto [least, most] = std::ranges::minmax_element(tokens);
    const std::int64_t sum = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
    fmt::format_to(
        std::back_inserter(out),
        "round {}: tokens a rank {} to {}, mean {:.0f}; fullest uses {:.1f}% of the budget\n",
        r,
        *least,
        *most,
        static_cast<double>(sum) / plan.world,
        percent(*most, plan.token_budget));
  }
}

void append_leaf_first(const Plan& plan, std::string& out) {
  for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
    const Round& round = plan.rounds[r];
    const std::vector<std::int32_t>& first = round.schedule.leaf_first;
    const std::int64_t sum = std::accumulate(first.begin(), first.end(), std::int64_t{0});
    if (sum == 0) {
      continue;
    }
    const auto ranks = std::ssize(first) - std::ranges::count(first, 0);
    const auto leaves = std::ranges::count_if(
        round.placements, [](const Placement& placement) { return placement.node.degree == 1; });
    fmt::format_to(std::back_inserter(out),
                   "round {}: {} of {}, on {}, run before the first level\n",
                   r,
                   sum,
                   counted(leaves, "leaf sequence"),
                   counted(ranks, "rank"));
  }
}

void append_cuts(const Plan& plan, std::string& out) {
  for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
    for (const LevelCut& cut : plan.rounds[r].schedule.cuts) {
      std::int64_t sequences = 0;
      std::int64_t short_ones = 0;
      for (const Placement& placement : plan.rounds[r].placements) {
        if (placement.node.degree == cut.degree) {
          ++sequences;
          short_ones += placement.tokens <= cut.tokens ? 1 : 0;
        }
      }
      fmt::format_to(std::back_inserter(out),
                     "round {}: degree {} runs in two waves: {} of its {} sequences, of up to {} "
                     "tokens, apart from the longer ones\n",
                     r,
                     cut.degree,
                     short_ones,
                     sequences,
                     cut.tokens);
    }
  }
}

void append_load(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  const double load = plan.predicted.forward + plan.predicted.backward;
  if (load > 0) {
    fmt::format_to(to,
                   "load {:.3f} ms a layer (forward {:.3f}, backward {:.3f})",
                   load * 1e3,
                   plan.predicted.forward * 1e3,
                   plan.predicted.backward * 1e3);
    if (plan.bound_seconds > 0) {
      fmt::format_to(to,
                     ", bound {:.3f} ms, gap {:.2f}%",
                     plan.bound_seconds * 1e3,
                     100 * (load / plan.bound_seconds - 1));
    }
    fmt::format_to(to, "\n");
  }
  if (plan.predicted.seconds > 0) {
    fmt::format_to(
        to,
        "predicted step {:.4f} s (serial exchanges, mean FSDP cost; nsp simulate plays the step)\n",
        plan.predicted.seconds);
  }
  if (plan.planning_ms > 0) {
    fmt::format_to(to, "planned in {:.2f} ms\n", plan.planning_ms);
  }
}

void append_dropped(const Plan& plan, std::string& out) {
  for (const Dropped& dropped : plan.dropped) {
    fmt::format_to(std::back_inserter(out),
                   "dropped: sequence {}, kept {} of {} tokens: {}\n",
                   dropped.sequence,
                   dropped.kept,
                   dropped.tokens,
                   dropped.why);
  }
}

}  // namespace

std::string summary(const Plan& plan) {
  std::string out;
  append_settings(plan, out);
  if (plan.num_tokens > 0) {
    append_levels(plan, out);
    out += "\n";
    append_tokens(plan, out);
    append_leaf_first(plan, out);
    append_cuts(plan, out);
  }
  append_load(plan, out);
  append_dropped(plan, out);
  return out;
}

std::string explanation(const Plan& plan) {
  std::string out;
  append_settings(plan, out);
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "\n{:<10} {:>6} {:<8} {:>9} {:>12} {:>7}  {}\n",
                 "length",
                 "degree",
                 "backend",
                 "sequences",
                 "tokens",
                 "share",
                 "why");
  for (const ClassShare& share : explain(plan)) {
    fmt::format_to(to,
                   "{:<10} {:>6} {:<8} {:>9} {:>12} {:>6.1f}%  {}\n",
                   share.length,
                   share.degree,
                   name(share.backend),
                   share.sequences,
                   share.tokens,
                   percent(share.tokens, plan.num_tokens),
                   share.why);
  }
  append_leaf_first(plan, out);
  append_cuts(plan, out);
  append_dropped(plan, out);
  return out;
}

}  // namespace nsp
