// A complete or partial assignment whose exact load and energy follow every change.
//
// Each node and way keeps the sums of its sequences, each rank its forward and backward seconds and
// tokens; adding a sequence to a node of degree d renews d ranks. Seconds equal evaluate()'s to the
// nanosecond. The energy is what a search lowers: the sum over the ranks of the squares of what
// lies above the targets (forward, backward, tokens), each in units of target / 2^16. Unlike the
// largest rank alone, it tells a search whether a change helps when many ranks are too high.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "nsp/planner/cost_table.h"
#include "nsp/planner/problem.h"

namespace nsp {

class Assignment {
 public:
  // A node and a way to run it as a number: way by way, leaves first, by first rank.
  using Id = std::uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  // Borrows the table, and the problem through it.
  explicit Assignment(CostTable& costs);

  void place(std::size_t sequence, Id node);
  void remove(std::size_t sequence);
  void move(std::size_t sequence, Id node);
  // Makes it equal to these nodes, one a sequence; not between begin() and undo().
  void assign(const std::vector<Id>& nodes);
  void assign(const std::vector<Node>& nodes);  // local and ulysses
  void assign(const std::vector<Placement>& placements);

  // undo() takes back every place, remove and move since begin(); keep() ends the possibility.
  void begin();
  void keep() { recording_ = false; }
  void undo();

  // Largest of each pass over the ranks, nanoseconds of one layer.
  Passes largest() const;
  // Mean over the ranks, rounded down.
  Passes mean() const;
  // Sum over the ranks of forward + backward, nanoseconds x ranks.
  std::int64_t area() const { return totals_.area.sum(); }
  // Sum over the ranks of the tokens beyond the budget.
  std::int64_t excess() const { return totals_.excess; }
  // Nanoseconds x ranks of exchanges, hidden ones too.
  std::int64_t traffic() const { return totals_.traffic; }

  void set_targets(const Passes& targets);
  // The other energy, for assignments without the short sequences: these are a fluid of `rates`
  // nanoseconds a token that fills each rank up to the first of its targets and its token budget.
  // The energy is minus the tokens that the ranks can take; where a rank is beyond, times 8.
  void set_fluid(const Passes& targets, const Passes& rates);
  std::int64_t energy() const { return totals_.energy; }

  const std::vector<Id>& nodes() const { return node_of_; }  // of each sequence
  const std::vector<std::uint32_t>& members(Id node) const { return members_[node]; }
  std::vector<Placement> placement() const;  // of complete assignments

  Id id(const Node& node) const;  // local or ulysses; kNone where that is not allowed
  Id id(std::int32_t first_rank, const Way& way) const;
  Node node(Id id) const;
  std::size_t way(Id id) const { return cells_[id].way; }
  std::size_t level(Id id) const { return costs_.ways()[way(id)].level; }
  std::size_t ways() const { return offset_.size(); }
  std::size_t levels() const { return costs_.levels(); }
  const WayRange& ways_at(std::size_t level) const { return costs_.ways_at(level); }
  // Nodes of a way: their number, the first one's id, the one that holds a rank.
  std::size_t way_size(std::size_t way) const { return ranks_.size() >> costs_.ways()[way].level; }
  Id first_id(std::size_t way) const { return offset_[way]; }
  Id node_of_rank(std::size_t rank, std::size_t way) const {
    return offset_[way] + static_cast<Id>(rank >> costs_.ways()[way].level);
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
    Passes streamed;
    std::uint32_t longest = UINT32_MAX;  // the smallest member
    std::uint32_t way = 0;
  };
  struct Rank {
    Passes cost;
    Passes dense;
    std::int64_t tokens = 0;
    std::int64_t penalty = 0;
  };
  struct Totals {
    Passes area;
    std::int64_t traffic = 0;
    std::int64_t excess = 0;
    std::int64_t energy = 0;
  };
  struct Change {
    Id node = 0;
    std::uint32_t sequence = 0;
    std::uint32_t place = 0;  // among the members, of one that left
    bool left = false;
  };
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  void attach(std::size_t sequence, Id node);
  void detach(std::size_t sequence);
  std::uint32_t longest_of(Id node) const;
  Passes renew_own(Id node);
  void renew(Id node, std::size_t sequence, std::int64_t sign);
  void slide_tokens(std::size_t sequence, Id node, std::int64_t sign);
  void settle_nodes(const std::vector<bool>& changed);
  void settle_ranks();
  Span touched(std::size_t first, std::size_t degree) const;
  void record(Id node, std::size_t sequence, bool left);
  void record(const Span& span);
  void put_back(const Change& change);
  void add_tokens(Rank& rank, std::int64_t tokens);
  void settle(Rank& rank, const Passes& dense);
  void settle_groups(const Span& span);
  std::int64_t slice(const Sequence& sequence, const TableWay& way, std::int64_t i) const;
  std::int64_t penalty_of(const Rank& rank) const;
  std::int64_t room_of(const Rank& rank) const;
  void renew_energy();
  std::size_t index(Id id) const { return id - offset_[cells_[id].way]; }

  CostTable& costs_;
  const Problem& problem_;
  std::vector<Id> offset_;  // by way
  std::vector<Cell> cells_;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<Rank> ranks_;
  std::vector<Id> node_of_;
  std::vector<std::uint32_t> place_;  // of a sequence among its node's members
  Passes targets_{.forward = 1, .backward = 1};
  std::int64_t token_target_ = 0;
  bool fluid_ = false;
  std::int64_t scale_[3] = {0, 0, 0};  // 2^32 / target: forward, backward, tokens
  Totals totals_;

  bool recording_ = false;  // since begin(): what undo() needs
  Totals before_;
  std::vector<Change> changes_;
  std::vector<std::pair<Id, Cell>> cells_before_;
  std::vector<Span> spans_;
  std::vector<Rank> ranks_before_;
};

// What decides between assignments: tokens beyond the budget, then load, then exchanged bytes.
struct Quality {
  std::int64_t excess = 0;
  std::int64_t load = 0;
  std::int64_t traffic = 0;  // nanoseconds x ranks

  auto operator<=>(const Quality&) const = default;
};

Quality quality(const Assignment& state);

}  // namespace nsp
