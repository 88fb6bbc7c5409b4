#include "nsp/planner/assignment.h"

#include <algorithm>
#include <bit>

#include "nsp/cost/exact.h"
#include "nsp/cost/launch_law.h"
#include "nsp/plan/layout.h"

namespace nsp {
namespace {

constexpr std::int64_t kUnits = std::int64_t{1} << 16;  // a target in units of the energy

Passes operator-(const Passes& a, const Passes& b) {
  return {.forward = a.forward - b.forward, .backward = a.backward - b.backward};
}

// The square of value beyond target in units of target / 2^16, at most 2^40.
std::int64_t square_above(std::int64_t value, std::int64_t target, std::int64_t scale) {
  if (value <= target) {
    return 0;
  }
  const Wide above = (wide(value - target) * wide(scale)) >> 32U;
  const auto capped = static_cast<std::int64_t>(std::min(above, wide(16 * kUnits)));
  return capped * capped;
}

}  // namespace

Assignment::Assignment(CostTable& costs)
    : costs_(costs),
      problem_(costs.problem()),
      ranks_(static_cast<std::size_t>(problem_.world)),
      node_of_(problem_.sequences.size(), kNone),
      place_(problem_.sequences.size(), 0) {
  for (std::size_t l = 0; l < costs.levels(); ++l) {
    offset_.push_back(static_cast<Id>(cells_.size()));
    fixed_.push_back(problem_.model->node_fixed(std::int32_t{1} << l));
    cells_.resize(cells_.size() + level_size(l));
    for (Id id = offset_[l]; id < cells_.size(); ++id) {
      cells_[id].level = static_cast<std::uint32_t>(l);
    }
  }
  for (Rank& rank : ranks_) {
    rank.cost = problem_.model->dense_fixed();
    area_ += rank.cost;
  }
  set_targets(targets_);
}

Assignment::Id Assignment::id(const Node& node) const {
  const auto l = static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(node.degree)));
  return node_of_rank(static_cast<std::size_t>(node.first_rank), l);
}

Node Assignment::node(Id id) const {
  const std::size_t l = level(id);
  return {.first_rank = static_cast<std::int32_t>(index(id) << l), .degree = std::int32_t{1} << l};
}

void Assignment::place(std::size_t sequence, Id node) {
  Cell& cell = cells_[node];
  const NodeShare& cost = costs_.at(sequence, cell.level);
  cell.work += cost.work;
  cell.traffic += cost.traffic;
  traffic_ += cost.traffic.sum() << cell.level;
  cell.longest = std::min(cell.longest, static_cast<std::uint32_t>(sequence));
  place_[sequence] = static_cast<std::uint32_t>(cell.members.size());
  cell.members.push_back(static_cast<std::uint32_t>(sequence));
  node_of_[sequence] = node;
  renew(node, sequence, 1);
}

void Assignment::remove(std::size_t sequence) {
  const Id node = node_of_[sequence];
  Cell& cell = cells_[node];
  const NodeShare& cost = costs_.at(sequence, cell.level);
  cell.work = cell.work - cost.work;
  cell.traffic = cell.traffic - cost.traffic;
  traffic_ -= cost.traffic.sum() << cell.level;
  const std::uint32_t last = cell.members.back();
  cell.members[place_[sequence]] = last;
  place_[last] = place_[sequence];
  cell.members.pop_back();
  node_of_[sequence] = kNone;
  if (cell.longest == sequence) {
    const auto next = std::ranges::min_element(cell.members);
    cell.longest = next == cell.members.end() ? UINT32_MAX : *next;
  }
  renew(node, sequence, -1);
}

void Assignment::move(std::size_t sequence, Id node) {
  remove(sequence);
  place(sequence, node);
}

void Assignment::assign(const std::vector<Id>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (node_of_[i] == nodes[i]) {
      continue;
    }
    if (node_of_[i] != kNone) {
      remove(i);
    }
    if (nodes[i] != kNone) {
      place(i, nodes[i]);
    }
  }
}

void Assignment::assign(const std::vector<Node>& nodes) {
  std::vector<Id> ids;
  ids.reserve(nodes.size());
  for (const Node& node : nodes) {
    ids.push_back(id(node));
  }
  assign(ids);
}

Passes Assignment::own(const Cell& cell) {
  if (cell.members.empty()) {
    return {};
  }
  const Passes& path = costs_.at(cell.longest, cell.level).path;
  Passes cost = fixed_[cell.level];
  cost += cell.traffic;
  cost.forward += launch_law(cell.work.forward, path.forward);
  cost.backward += launch_law(cell.work.backward, path.backward);
  return cost;
}

void Assignment::renew(Id node, std::size_t sequence, std::int64_t sign) {
  Cell& cell = cells_[node];
  const Passes before = cell.own;
  cell.own = own(cell);
  const Passes change = cell.own - before;
  const Sequence& s = problem_.sequences[sequence];
  const std::int64_t degree = std::int64_t{1} << cell.level;
  const std::size_t first = index(node) << cell.level;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < degree; ++i) {
    const std::int64_t end = boundary(s.tokens, s.index, degree, i + 1);
    renew_rank(ranks_[first + static_cast<std::size_t>(i)], change, sign * (end - begin));
    begin = end;
  }
}

void Assignment::renew_rank(Rank& rank, const Passes& change, std::int64_t tokens) {
  const Passes before = rank.cost;
  rank.cost += change;
  if (tokens != 0) {
    excess_ -= std::max<std::int64_t>(0, rank.tokens - problem_.token_budget);
    rank.tokens += tokens;
    excess_ += std::max<std::int64_t>(0, rank.tokens - problem_.token_budget);
    const Passes dense = problem_.model->dense(rank.tokens);
    rank.cost += dense - rank.dense;
    rank.dense = dense;
  }
  area_ += rank.cost - before;
  energy_ -= rank.penalty;
  rank.penalty = penalty_of(rank);
  energy_ += rank.penalty;
}

std::int64_t Assignment::room_of(const Rank& rank) const {
  const auto tokens = [](std::int64_t seconds, std::int64_t scale) {
    return static_cast<std::int64_t>((static_cast<__int128>(seconds) * scale) >> 32U);
  };
  return std::min({problem_.token_budget - rank.tokens,
                   tokens(targets_.forward - rank.cost.forward, scale_[0]),
                   tokens(targets_.backward - rank.cost.backward, scale_[1])});
}

std::int64_t Assignment::penalty_of(const Rank& rank) const {
  if (fluid_) {
    const std::int64_t room = room_of(rank);
    return room < 0 ? -2 * room : -room;
  }
  return square_above(rank.cost.forward, targets_.forward, scale_[0]) +
         square_above(rank.cost.backward, targets_.backward, scale_[1]) +
         square_above(rank.tokens, token_target_, scale_[2]);
}

void Assignment::set_targets(const Passes& targets) {
  targets_ = {.forward = std::max<std::int64_t>(1, targets.forward),
              .backward = std::max<std::int64_t>(1, targets.backward)};
  const std::int64_t sum = targets_.sum();
  scale_[0] = (kUnits << 32) / sum;
  scale_[1] = scale_[0];
  token_target_ = problem_.token_budget - problem_.token_budget / 128;
  scale_[2] = (kUnits << 34) / std::max<std::int64_t>(1, problem_.token_budget);
  fluid_ = false;
  renew_energy();
}

void Assignment::set_fluid(const Passes& targets, const Passes& rates) {
  targets_ = targets;
  scale_[0] = (std::int64_t{1} << 32) / std::max<std::int64_t>(1, rates.forward);
  scale_[1] = (std::int64_t{1} << 32) / std::max<std::int64_t>(1, rates.backward);
  fluid_ = true;
  renew_energy();
}

void Assignment::renew_energy() {
  energy_ = 0;
  for (Rank& rank : ranks_) {
    rank.penalty = penalty_of(rank);
    energy_ += rank.penalty;
  }
}

Passes Assignment::largest() const {
  Passes largest;
  for (const Rank& rank : ranks_) {
    largest.forward = std::max(largest.forward, rank.cost.forward);
    largest.backward = std::max(largest.backward, rank.cost.backward);
  }
  return largest;
}

Passes Assignment::mean() const {
  const auto world = static_cast<std::int64_t>(ranks_.size());
  return {.forward = area_.forward / world, .backward = area_.backward / world};
}

std::int64_t Assignment::node_load(Id id) const {
  const std::size_t first = index(id) << level(id);
  std::int64_t most = 0;
  for (std::size_t rank = first; rank < first + (std::size_t{1} << level(id)); ++rank) {
    most = std::max(most, ranks_[rank].cost.sum());
  }
  return most;
}

std::vector<Node> Assignment::placement() const {
  std::vector<Node> result;
  result.reserve(node_of_.size());
  for (const Id id : node_of_) {
    result.push_back(node(id));
  }
  return result;
}

}  // namespace nsp
