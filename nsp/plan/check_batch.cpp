#include <map>
#include <set>

#include "nsp/plan/check_rules.h"

namespace nsp {
namespace {

// Sequences seen, with how often, over all placements and skipped ones.
std::map<std::int64_t, std::int64_t> appearances(const Plan& plan) {
  std::map<std::int64_t, std::int64_t> seen;
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      ++seen[placement.sequence];
    }
  }
  for (const Dropped& dropped : plan.dropped) {
    if (dropped.kept == 0) {
      ++seen[dropped.sequence];
    }
  }
  return seen;
}

}  // namespace

// Walks the sequences in order and reports gaps as ranges: num_sequences may be anything in a
// hand-edited file.
void check_once(const Plan& plan, Violations& out) {
  const auto missing = [&out](std::int64_t begin, std::int64_t end) {
    if (begin < end) {
      out.push_back((end - begin == 1 ? "sequence " + std::to_string(begin) + " is missing"
                                      : "sequences " + std::to_string(begin) + " to " +
                                            std::to_string(end - 1) + " are missing") +
                    ": each must be placed once, or be dropped with kept 0");
    }
  };
  std::int64_t next = 0;
  for (const auto& [sequence, count] : appearances(plan)) {
    if (sequence < 0 || sequence >= plan.num_sequences) {
      out.push_back("sequence " + std::to_string(sequence) + ": not among the " +
                    std::to_string(plan.num_sequences) + " of the batch");
      continue;
    }
    missing(next, sequence);
    next = sequence + 1;
    if (count > 1) {
      out.push_back("sequence " + std::to_string(sequence) + " appears " + std::to_string(count) +
                    " times: each must be placed once, or be dropped with kept 0");
    }
  }
  missing(next, plan.num_sequences);
}

void check_dropped(const Plan& plan, Violations& out) {
  std::map<std::int64_t, std::int64_t> placed;
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      placed[placement.sequence] = placement.tokens;
    }
  }
  std::set<std::int64_t> truncated;
  for (const Dropped& dropped : plan.dropped) {
    const std::string where = "dropped sequence " + std::to_string(dropped.sequence) + ": ";
    if (dropped.tokens < 1 || dropped.kept < 0 || dropped.kept >= dropped.tokens) {
      out.push_back(where + "kept " + std::to_string(dropped.kept) + " of " +
                    std::to_string(dropped.tokens) + " tokens: must be fewer, and not negative");
    } else if (dropped.kept > 0) {
      const auto it = placed.find(dropped.sequence);
      if (it == placed.end() || it->second != dropped.kept) {
        out.push_back(
            where + "keeps " + std::to_string(dropped.kept) + " tokens, but " +
            (it == placed.end() ? "is not placed" : std::to_string(it->second) + " are placed"));
      }
      if (!truncated.insert(dropped.sequence).second) {
        out.push_back(where + "stands twice");
      }
    }
  }
}

void check_num_tokens(const Plan& plan, Violations& out) {
  std::int64_t sum = 0;
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      sum += placement.tokens;
    }
  }
  if (sum != plan.num_tokens) {
    out.push_back("num_tokens " + std::to_string(plan.num_tokens) + ": the placements hold " +
                  std::to_string(sum));
  }
}

}  // namespace nsp
