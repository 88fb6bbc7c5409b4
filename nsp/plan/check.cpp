#include "nsp/plan/check.h"

#include <algorithm>
#include <string>

#include "nsp/base/error.h"
#include "nsp/plan/check_rules.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

std::string in_round(std::size_t round) {
  return "round " + std::to_string(round);
}

std::string node_text(const Node& node) {
  return "(first_rank " + std::to_string(node.first_rank) + ", degree " +
         std::to_string(node.degree) + ")";
}

void check_settings(const Plan& plan, Violations& out) {
  try {
    check_tree(plan.world, plan.sp_max);
  } catch (const BadInput& error) {
    out.emplace_back(error.what());
  }
  if (plan.ranks_per_host < 1 || plan.world % plan.ranks_per_host != 0) {
    out.push_back("ranks_per_host " + std::to_string(plan.ranks_per_host) +
                  ": must divide the world of " + std::to_string(plan.world) + " ranks");
  }
  if (plan.token_budget < 0 || plan.token_budget > kMaxTokens) {
    out.push_back("token_budget " + std::to_string(plan.token_budget) + ": must be from 0 to " +
                  std::to_string(kMaxTokens));
  }
}

void check_predictions(const Plan& plan, Violations& out) {
  const auto expect = [&](const char* field, double value) {
    if (!(value >= 0)) {
      out.push_back(std::string(field) + " " + std::to_string(value) + ": must not be negative");
    }
  };
  expect("bound_seconds", plan.bound_seconds);
  expect("predicted.seconds", plan.predicted.seconds);
  expect("predicted.forward", plan.predicted.forward);
  expect("predicted.backward", plan.predicted.backward);
  expect("predicted.tokens_max", static_cast<double>(plan.predicted.tokens_max));
  expect("predicted.bytes_max", static_cast<double>(plan.predicted.bytes_max));
}

// ulysses_degree follows from backend and degree, except the inner size of usp.
std::string ulysses_fault(const Placement& p) {
  const std::string given = "ulysses_degree " + std::to_string(p.ulysses_degree);
  const std::int32_t degree = p.node.degree;
  switch (p.backend) {
    case Backend::kLocal:
    case Backend::kUlysses:
      return p.ulysses_degree == degree
                 ? ""
                 : given + ": must equal the degree, " + std::to_string(degree);
    case Backend::kGather:
    case Backend::kRing:
      return p.ulysses_degree == 1
                 ? ""
                 : given + ": must be 1 for backend " + std::string(name(p.backend));
    case Backend::kUspRing:
    case Backend::kUspGather:
      break;
  }
  return p.ulysses_degree > 1 && p.ulysses_degree < degree && degree % p.ulysses_degree == 0
             ? ""
             : given + ": must divide the degree, " + std::to_string(degree) +
                   ", and lie between 1 and it for backend " + std::string(name(p.backend));
}

// What is wrong with one placement alone; empty when nothing is.
std::string placement_fault(const Placement& p, const Plan& plan) {
  if (!is_node(p.node, plan.world, plan.sp_max)) {
    return "node " + node_text(p.node) + " is not an aligned node of the tree (world " +
           std::to_string(plan.world) + ", sp_max " + std::to_string(plan.sp_max) + ")";
  }
  if (p.tokens < 1 || p.tokens > kMaxTokens) {
    return std::to_string(p.tokens) + " tokens: must be from 1 to " + std::to_string(kMaxTokens);
  }
  if ((p.backend == Backend::kLocal) != (p.node.degree == 1)) {
    return "backend " + std::string(name(p.backend)) + " at degree " +
           std::to_string(p.node.degree) + ": local is for degree 1, and only local is";
  }
  return ulysses_fault(p);
}

void check_placements(const Plan& plan, Violations& out) {
  for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
    const std::vector<Placement>& placements = plan.rounds[r].placements;
    for (const Placement& placement : placements) {
      const std::string fault = placement_fault(placement, plan);
      if (!fault.empty()) {
        out.push_back(in_round(r) + ", sequence " + std::to_string(placement.sequence) + ": " +
                      fault);
      }
    }
    if (!std::ranges::is_sorted(placements, {}, &Placement::sequence)) {
      out.push_back(in_round(r) + ": placements must stand in increasing order of sequence");
    }
  }
}

}  // namespace

std::vector<std::string> find_violations(const Plan& plan) {
  Violations out;
  check_settings(plan, out);
  check_predictions(plan, out);
  if (out.empty()) {
    check_placements(plan, out);
  }
  if (out.empty()) {  // nodes and tokens are valid: the layout exists
    for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
      check_schedule(plan, r, out);
      check_exchanges(plan, r, out);
      check_budget(plan, r, out);
    }
    check_num_tokens(plan, out);
  }
  check_once(plan, out);
  check_dropped(plan, out);
  if (!plan.feasible) {
    out.emplace_back(
        "feasible false: no plan kept the token budget; this one must not be executed");
  }
  const std::string hash = plan_hash(plan);
  if (hash != plan.hash) {
    out.push_back("hash " + plan.hash + ": the content has " + hash);
  }
  return out;
}

void check(const Plan& plan) {
  const std::vector<std::string> violations = find_violations(plan);
  if (!violations.empty()) {
    throw BadInput("plan: " + violations.front());
  }
}

}  // namespace nsp
