// What each sequence of a problem costs on a node of each way, computed once and when asked for.
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
  Passes traffic;   // both exchanges of each pass, and merging
  Passes streamed;  // beside the launches

  std::int64_t sum() const { return work.sum() + traffic.sum(); }
};

// A way that the problem allows, and what its nodes cost beside their sequences.
struct TableWay {
  Way way;
  std::size_t level = 0;  // log2 of the degree
  WayFixed fixed;
  Passes exchanges;  // latencies of `fixed`
};

// Half-open range of positions in CostTable::ways().
struct WayRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

// Fills itself on reading: one thread at a time. Borrows the problem.
class CostTable {
 public:
  explicit CostTable(const Problem& problem);
  // Of these ways alone, by degree.
  CostTable(const Problem& problem, const std::vector<Way>& ways);

  const Problem& problem() const { return problem_; }
  // By degree, then backend; the first of all that a problem allows is local.
  const std::vector<TableWay>& ways() const { return ways_; }
  // Degrees 1, 2, 4, ... 2^(levels - 1); the largest has a way.
  std::size_t levels() const { return by_level_.size(); }
  // The ways of a level; one without any stands for the level below it.
  const WayRange& ways_at(std::size_t level) const { return by_level_[level]; }
  // `sequence`: position in problem.sequences; `way`: position in ways().
  const NodeShare& at(std::size_t sequence, std::size_t way) {
    const std::size_t cell = sequence * ways_.size() + way;
    return known_[cell] != 0 ? shares_[cell] : find(sequence, way);
  }
  // Nanoseconds of an active node.
  Passes node(std::size_t way,
              const Passes& work,
              const Passes& path,
              const Passes& traffic,
              const Passes& streamed) const;
  // The scalar surrogates of problem.h, from the table.
  std::int64_t share(std::size_t sequence, std::size_t way);
  std::int64_t opening_share(std::size_t sequence, std::size_t way);

 private:
  const NodeShare& find(std::size_t sequence, std::size_t way);

  const Problem& problem_;
  std::vector<TableWay> ways_;
  std::vector<WayRange> by_level_;
  std::vector<NodeShare> shares_;  // sequence by sequence
  std::vector<std::uint8_t> known_;
};

}  // namespace nsp
