// What each sequence of a problem costs on a node of each degree, computed once and when asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/cost/cost_model.h"
#include "nsp/planner/problem.h"

namespace nsp {

// Nanoseconds that a sequence adds to each rank of its node, dense part left out.
struct NodeShare {
  Passes work;
  Passes path;
  Passes traffic;  // both exchanges of each pass

  std::int64_t sum() const { return work.sum() + traffic.sum(); }
};

// Fills itself on reading: one thread at a time. Borrows the problem.
class CostTable {
 public:
  explicit CostTable(const Problem& problem);

  const Problem& problem() const { return problem_; }
  // Degrees that the model allows: 1, 2, 4, ... 2^(levels - 1).
  std::size_t levels() const { return levels_; }
  // `sequence`: position in problem.sequences.
  const NodeShare& at(std::size_t sequence, std::size_t level);
  // share() and opening_share() of problem.h, from the table.
  std::int64_t share(std::size_t sequence, std::size_t level);
  std::int64_t opening_share(std::size_t sequence, std::size_t level);

 private:
  const Problem& problem_;
  std::size_t levels_;
  std::vector<NodeShare> shares_;  // sequence by sequence
  std::vector<std::uint8_t> known_;
};

}  // namespace nsp
