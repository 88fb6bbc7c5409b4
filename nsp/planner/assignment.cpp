#include "nsp/planner/assignment.h"

#include <algorithm>

#include "nsp/cost/exact.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"

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
  for (std::size_t w = 0; w < costs.ways().size(); ++w) {
    offset_.push_back(static_cast<Id>(cells_.size()));
    Cell empty;
    empty.way = static_cast<std::uint32_t>(w);
    cells_.resize(cells_.size() + way_size(w), empty);
  }
  members_.resize(cells_.size());
  for (Rank& rank : ranks_) {
    rank.cost = problem_.model->dense_fixed();
    totals_.area += rank.cost;
  }
  set_targets(targets_);
}

Assignment::Id Assignment::id(std::int32_t first_rank, const Way& way) const {
  for (std::size_t w = 0; w < ways(); ++w) {
    if (costs_.ways()[w].way == way) {
      return node_of_rank(static_cast<std::size_t>(first_rank), w);
    }
  }
  return kNone;
}

Assignment::Id Assignment::id(const Node& node) const {
  return id(node.first_rank, head_split(node.degree));
}

Node Assignment::node(Id id) const {
  const std::size_t l = level(id);
  return {.first_rank = static_cast<std::int32_t>(index(id) << l), .degree = std::int32_t{1} << l};
}

// A member without what follows from it: the node's longest and seconds, the ranks.
void Assignment::attach(std::size_t sequence, Id node) {
  Cell& cell = cells_[node];
  const NodeShare& cost = costs_.at(sequence, cell.way);
  cell.work += cost.work;
  cell.traffic += cost.traffic;
  cell.streamed += cost.streamed;
  totals_.traffic += (cost.traffic.sum() + cost.streamed.sum()) << level(node);
  std::vector<std::uint32_t>& members = members_[node];
  place_[sequence] = static_cast<std::uint32_t>(members.size());
  members.push_back(static_cast<std::uint32_t>(sequence));
  node_of_[sequence] = node;
}

void Assignment::detach(std::size_t sequence) {
  const Id node = node_of_[sequence];
  Cell& cell = cells_[node];
  const NodeShare& cost = costs_.at(sequence, cell.way);
  cell.work = cell.work - cost.work;
  cell.traffic = cell.traffic - cost.traffic;
  cell.streamed = cell.streamed - cost.streamed;
  totals_.traffic -= (cost.traffic.sum() + cost.streamed.sum()) << level(node);
  std::vector<std::uint32_t>& members = members_[node];
  const std::uint32_t last = members.back();
  members[place_[sequence]] = last;
  place_[last] = place_[sequence];
  members.pop_back();
  node_of_[sequence] = kNone;
}

std::uint32_t Assignment::longest_of(Id node) const {
  const auto first = std::ranges::min_element(members_[node]);
  return first == members_[node].end() ? UINT32_MAX : *first;
}

void Assignment::place(std::size_t sequence, Id node) {
  record(node, sequence, false);
  attach(sequence, node);
  cells_[node].longest = std::min(cells_[node].longest, static_cast<std::uint32_t>(sequence));
  renew(node, sequence, 1);
}

void Assignment::remove(std::size_t sequence) {
  const Id node = node_of_[sequence];
  record(node, sequence, true);
  detach(sequence);
  if (cells_[node].longest == sequence) {
    cells_[node].longest = longest_of(node);
  }
  renew(node, sequence, -1);
}

void Assignment::move(std::size_t sequence, Id node) {
  remove(sequence);
  place(sequence, node);
}

void Assignment::begin() {
  recording_ = true;
  before_ = totals_;
  changes_.clear();
  cells_before_.clear();
  spans_.clear();
  ranks_before_.clear();
}

void Assignment::record(Id node, std::size_t sequence, bool left) {
  if (recording_) {
    changes_.push_back({.node = node,
                        .sequence = static_cast<std::uint32_t>(sequence),
                        .place = place_[sequence],
                        .left = left});
    cells_before_.emplace_back(node, cells_[node]);
  }
}

void Assignment::record(const Span& span) {
  if (recording_) {
    spans_.push_back(span);
    ranks_before_.insert(ranks_before_.end(),
                         ranks_.begin() + static_cast<std::ptrdiff_t>(span.begin),
                         ranks_.begin() + static_cast<std::ptrdiff_t>(span.end));
  }
}

// Members return to their order too: the same trials follow.
void Assignment::put_back(const Change& change) {
  std::vector<std::uint32_t>& members = members_[change.node];
  if (!change.left) {
    members.pop_back();
    node_of_[change.sequence] = kNone;
    return;
  }
  members.push_back(change.sequence);
  std::swap(members[change.place], members.back());
  place_[members.back()] = static_cast<std::uint32_t>(members.size() - 1);
  place_[change.sequence] = change.place;
  node_of_[change.sequence] = change.node;
}

void Assignment::undo() {
  for (std::size_t i = changes_.size(); i-- > 0;) {
    put_back(changes_[i]);
    cells_[cells_before_[i].first] = cells_before_[i].second;
  }
  auto saved = ranks_before_.end();
  for (std::size_t i = spans_.size(); i-- > 0;) {
    saved -= static_cast<std::ptrdiff_t>(spans_[i].end - spans_[i].begin);
    std::copy_n(saved,
                spans_[i].end - spans_[i].begin,
                ranks_.begin() + static_cast<std::ptrdiff_t>(spans_[i].begin));
  }
  totals_ = before_;
  recording_ = false;
}

// Whole groups of expert parallelism: the mean of their tokens is in each rank's seconds.
Assignment::Span Assignment::touched(std::size_t first, std::size_t degree) const {
  const auto ep = static_cast<std::size_t>(problem_.model->ep());
  return {.begin = first / ep * ep, .end = (first + degree + ep - 1) / ep * ep};
}

// The layout's integers, by shifts where a node cuts a sequence in one piece a rank.
std::int64_t Assignment::slice(const Sequence& sequence,
                               const TableWay& way,
                               std::int64_t i) const {
  if (ring_size(way.way) > 1) {
    return tokens_of({.sequence = sequence.index,
                      .tokens = sequence.tokens,
                      .node = {.first_rank = 0, .degree = way.way.degree},
                      .backend = way.way.backend,
                      .ulysses_degree = way.way.ulysses_degree},
                     static_cast<std::int32_t>(i));
  }
  const std::int64_t offset = sequence.index & (way.way.degree - 1);
  return (((i + 1) * sequence.tokens + offset) >> way.level) -
         ((i * sequence.tokens + offset) >> way.level);
}

// The node's seconds from its sums; what they change by.
Passes Assignment::renew_own(Id node) {
  Cell& cell = cells_[node];
  const Passes before = cell.own;
  cell.own = members_[node].empty() ? Passes{}
                                    : costs_.node(cell.way,
                                                  cell.work,
                                                  costs_.at(cell.longest, cell.way).path,
                                                  cell.traffic,
                                                  cell.streamed);
  const Passes change = cell.own - before;
  const std::size_t l = level(node);
  totals_.area += {.forward = change.forward << l, .backward = change.backward << l};
  return change;
}

void Assignment::renew(Id node, std::size_t sequence, std::int64_t sign) {
  const TableWay& way = costs_.ways()[cells_[node].way];
  const Passes change = renew_own(node);
  const Sequence& s = problem_.sequences[sequence];
  const std::size_t first = index(node) << way.level;
  const Span span = touched(first, static_cast<std::size_t>(way.way.degree));
  record(span);
  const bool alone = problem_.model->ep() == 1;
  for (std::int32_t i = 0; i < way.way.degree; ++i) {
    Rank& rank = ranks_[first + static_cast<std::size_t>(i)];
    rank.cost += change;
    add_tokens(rank, sign * slice(s, way, i));
    if (alone) {
      settle(rank, problem_.model->dense(rank.tokens));
    }
  }
  if (!alone) {
    settle_groups(span);
  }
}

void Assignment::add_tokens(Rank& rank, std::int64_t tokens) {
  totals_.excess -= std::max<std::int64_t>(0, rank.tokens - problem_.token_budget);
  rank.tokens += tokens;
  totals_.excess += std::max<std::int64_t>(0, rank.tokens - problem_.token_budget);
}

void Assignment::settle(Rank& rank, const Passes& dense) {
  const Passes change = dense - rank.dense;
  rank.cost += change;
  rank.dense = dense;
  totals_.area += change;
  totals_.energy -= rank.penalty;
  rank.penalty = penalty_of(rank);
  totals_.energy += rank.penalty;
}

void Assignment::settle_groups(const Span& span) {
  const auto ep = static_cast<std::size_t>(problem_.model->ep());
  for (std::size_t first = span.begin; first < span.end; first += ep) {
    std::int64_t tokens = 0;
    for (std::size_t rank = first; rank < first + ep; ++rank) {
      tokens += ranks_[rank].tokens;
    }
    const Passes experts = problem_.model->experts(tokens);
    for (std::size_t rank = first; rank < first + ep; ++rank) {
      Passes dense = problem_.model->dense_before(ranks_[rank].tokens);
      dense += experts;
      settle(ranks_[rank], dense);
    }
  }
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
  totals_.energy = 0;
  for (Rank& rank : ranks_) {
    rank.penalty = penalty_of(rank);
    totals_.energy += rank.penalty;
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
  return {.forward = totals_.area.forward / world, .backward = totals_.area.backward / world};
}

std::int64_t Assignment::node_load(Id id) const {
  const std::size_t first = index(id) << level(id);
  std::int64_t most = 0;
  for (std::size_t rank = first; rank < first + (std::size_t{1} << level(id)); ++rank) {
    most = std::max(most, ranks_[rank].cost.sum());
  }
  return most;
}

std::vector<Placement> Assignment::placement() const {
  std::vector<Placement> result;
  result.reserve(node_of_.size());
  for (std::size_t i = 0; i < node_of_.size(); ++i) {
    const Sequence& sequence = problem_.sequences[i];
    const Id id = node_of_[i];
    result.push_back(nsp::place(
        sequence.index, sequence.tokens, node(id).first_rank, costs_.ways()[way(id)].way));
  }
  return result;
}

Quality quality(const Assignment& state) {
  return {.excess = state.excess(), .load = state.largest().sum(), .traffic = state.traffic()};
}

}  // namespace nsp
