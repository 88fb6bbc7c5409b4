#include <algorithm>
#include <utility>

#include "nsp/plan/check_rules.h"
#include "nsp/plan/exchanges.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/wave.h"

namespace nsp {
namespace {

std::string in_round(std::size_t round) {
  return "round " + std::to_string(round);
}

}  // namespace

void check_schedule(const Plan& plan, std::size_t r, Violations& out) {
  const Round& round = plan.rounds[r];
  const std::string where = in_round(r) + ", schedule: ";
  for (const std::string& fault :
       {find_cut_fault(round), find_order_fault(round, round.schedule.order)}) {
    if (!fault.empty()) {
      out.push_back(where + fault);
    }
  }
  std::vector<std::int32_t> degrees;
  for (const LevelTransport& level : round.schedule.transports) {
    degrees.push_back(level.degree);
  }
  if (degrees != exchanged_degrees(round)) {
    out.push_back(where + "transports must name each degree above 1 that is used, and no other");
  }
  if (std::ssize(round.schedule.leaf_first) != plan.world) {
    out.push_back(where + "leaf_first must have one entry for each of the " +
                  std::to_string(plan.world) + " ranks, not " +
                  std::to_string(round.schedule.leaf_first.size()));
    return;
  }
  std::vector<std::int32_t> leaves(static_cast<std::size_t>(plan.world), 0);
  for (const Placement& placement : round.placements) {
    if (placement.node.degree == 1) {
      ++leaves[static_cast<std::size_t>(placement.node.first_rank)];
    }
  }
  for (std::size_t rank = 0; rank < leaves.size(); ++rank) {
    const std::int32_t first = round.schedule.leaf_first[rank];
    if (first < 0 || first > leaves[rank]) {
      out.push_back(where + "leaf_first of rank " + std::to_string(rank) + " is " +
                    std::to_string(first) + ", but it has " + std::to_string(leaves[rank]) +
                    " leaf sequences");
    }
  }
}

// All ranks issue the same exchanges: the order is one, check_schedule holds it to the waves of the
// levels used, which follow from lengths, and how many a wave issues follows from its ways
// (exchanges.h), of which each backend has one.
// In each, what a member sends and what its peers expect are pieces of the same cut, chosen by one
// rule (needs_upper): both agree when the pieces of every placement join without gap or overlap.
void check_exchanges(const Plan& plan, std::size_t r, Violations& out) {
  for (const Placement& p : plan.rounds[r].placements) {
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
    for (std::int32_t i = 0; i < p.node.degree; ++i) {
      for (const Segment& piece : pieces_of(p, i)) {
        pieces.emplace_back(piece.begin, piece.end);
      }
    }
    std::ranges::sort(pieces);
    std::int64_t end = 0;
    bool joined = true;
    for (const auto& [begin, next] : pieces) {
      joined = joined && begin == end && next >= begin;
      end = next;
    }
    if (!joined || end != p.tokens) {
      out.push_back(in_round(r) + ", sequence " + std::to_string(p.sequence) +
                    ": sends do not match receives; its pieces do not join to " +
                    std::to_string(p.tokens) + " tokens");
    }
  }
  const std::vector<Way> ways = exchanged_ways(plan.rounds[r]);
  for (std::size_t i = 1; i < ways.size(); ++i) {
    const Way &way = ways[i - 1], &next = ways[i];
    if (way.degree == next.degree && way.backend == next.backend) {
      out.push_back(in_round(r) + ", backend " + std::string(name(way.backend)) + " at degree " +
                    std::to_string(way.degree) + ": ulysses_degree " +
                    std::to_string(way.ulysses_degree) + " and " +
                    std::to_string(next.ulysses_degree) +
                    " differ; sequences of one backend and degree share their exchanges");
    }
  }
}

void check_budget(const Plan& plan, std::size_t r, Violations& out) {
  const std::vector<std::int64_t> tokens = rank_tokens(plan.rounds[r], plan.world);
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    if (tokens[rank] > plan.token_budget) {
      out.push_back(in_round(r) + ", rank " + std::to_string(rank) + ": holds " +
                    std::to_string(tokens[rank]) + " tokens, above the token budget of " +
                    std::to_string(plan.token_budget));
    }
  }
}

}  // namespace nsp
