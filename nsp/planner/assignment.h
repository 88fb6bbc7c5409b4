// A complete or partial assignment whose exact load and energy follow every change.
//
// Each node keeps the sums of its sequences, each rank its forward and backward seconds and tokens;
// adding a sequence to a node of degree d renews d ranks. Seconds equal evaluate()'s to the
// nanosecond. The energy is what a search lowers: the sum over the ranks of the squares of what
// lies above the targets (forward, backward, tokens), each in units of target / 2^16. Unlike the
// largest rank alone, it tells a search whether a change helps when many ranks are too high.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/planner/cost_table.h"
#include "nsp/planner/problem.h"

namespace nsp {

class Assignment {
 public:
  // A node as a number: level by level, leaves first, by first rank.
  using Id = std::uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  // Borrows the table, and the problem through it.
  explicit Assignment(CostTable& costs);

  void place(std::size_t sequence, Id node);
  void remove(std::size_t sequence);
  void move(std::size_t sequence, Id node);
  // Makes it equal to these nodes, one a sequence.
  void assign(const std::vector<Id>& nodes);
  void assign(const std::vector<Node>& nodes);

  // Largest of each pass over the ranks, nanoseconds of one layer.
  Passes largest() const;
  // Mean over the ranks, rounded down.
  Passes mean() const;
  // Sum over the ranks of forward + backward, nanoseconds x ranks.
  std::int64_t area() const { return area_.sum(); }
  // Sum over the ranks of the tokens beyond the budget.
  std::int64_t excess() const { return excess_; }
  // Nanoseconds x ranks of exchanges.
  std::int64_t traffic() const { return traffic_; }

  void set_targets(const Passes& targets);
  // The other energy, for assignments without the short sequences: these are a fluid of `rates`
  // nanoseconds a token that fills each rank up to the first of its targets and its token budget.
  // The energy is minus the tokens that the ranks can take; where a rank is beyond, times 8.
  void set_fluid(const Passes& targets, const Passes& rates);
  std::int64_t energy() const { return energy_; }

  const std::vector<Id>& nodes() const { return node_of_; }  // of each sequence
  const std::vector<std::uint32_t>& members(Id node) const { return cells_[node].members; }
  std::vector<Node> placement() const;

  Id id(const Node& node) const;
  Node node(Id id) const;
  std::size_t level(Id id) const { return cells_[id].level; }
  std::size_t levels() const { return offset_.size(); }
  std::size_t level_size(std::size_t level) const { return ranks_.size() >> level; }
  Id first_id(std::size_t level) const { return offset_[level]; }
  Id node_of_rank(std::size_t rank, std::size_t level) const {
    return offset_[level] + static_cast<Id>(rank >> level);
  }

  std::size_t world() const { return ranks_.size(); }
  // Forward + backward of a rank, and the largest of a node's ranks.
  std::int64_t node_load(Id id) const;
  std::int64_t penalty(std::size_t rank) const { return ranks_[rank].penalty; }
  // Tokens of the fluid that the rank can take; below 0 beyond a target or the budget.
  std::int64_t room(std::size_t rank) const { return room_of(ranks_[rank]); }

 private:
  struct Cell {
    Passes own;  // the node's seconds; 0 without sequences
    Passes work;
    Passes traffic;
    std::uint32_t longest = UINT32_MAX;  // the smallest member
    std::uint32_t level = 0;
    std::vector<std::uint32_t> members;
  };
  struct Rank {
    Passes cost;
    Passes dense;
    std::int64_t tokens = 0;
    std::int64_t penalty = 0;
  };

  void renew(Id node, std::size_t sequence, std::int64_t sign);
  Passes own(const Cell& cell);
  void renew_rank(Rank& rank, const Passes& change, std::int64_t tokens);
  std::int64_t penalty_of(const Rank& rank) const;
  std::int64_t room_of(const Rank& rank) const;
  void renew_energy();
  std::size_t index(Id id) const { return id - offset_[cells_[id].level]; }

  CostTable& costs_;
  const Problem& problem_;
  std::vector<Id> offset_;
  std::vector<Passes> fixed_;  // by level
  std::vector<Cell> cells_;
  std::vector<Rank> ranks_;
  std::vector<Id> node_of_;
  std::vector<std::uint32_t> place_;  // of a sequence among its node's members
  Passes targets_{.forward = 1, .backward = 1};
  std::int64_t token_target_ = 0;
  bool fluid_ = false;
  std::int64_t scale_[3] = {0, 0, 0};  // 2^32 / target: forward, backward, tokens
  Passes area_;
  std::int64_t traffic_ = 0;
  std::int64_t excess_ = 0;
  std::int64_t energy_ = 0;
};

}  // namespace nsp
