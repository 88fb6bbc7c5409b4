// The linear costs that FlexSP's MILP sees of one micro-batch.
//
// A group of degree d takes fixed(d) + the sum over its sequences of time(bucket, d): share() of
// problem.h, with the bucket's mean for each. Exact when a bucket's sequences are equally long,
// except for the launch law's critical path, which is no sum: see with_path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nsp/planner/baselines/flexsp/cut.h"
#include "nsp/planner/cost_table.h"

namespace nsp {

struct LinearCosts {
  struct Cell {
    double time = 0;      // nanoseconds a sequence adds to each rank of its group, mean
    double tokens = 0;    // of the group's fullest rank, mean
    double work = 0;      // the attention launch's part of `time`
    double path = 0;      // critical path of the bucket's longest
    bool allowed = true;  // the bucket's longest fits under the token budget
  };

  std::int32_t world = 1;
  std::int64_t token_budget = 0;
  std::size_t levels = 0;           // degrees 1, 2, 4, ...
  Ends ends;                        // of the buckets, over the problem's sequences
  std::vector<std::int64_t> count;  // sequences of each bucket
  std::vector<Cell> cells;          // bucket by bucket
  std::vector<double> fixed;        // nanoseconds of a group, by level

  std::size_t buckets() const { return ends.size(); }
  const Cell& at(std::size_t bucket, std::size_t level) const {
    return cells[bucket * levels + level];
  }
  std::int64_t groups(std::size_t level) const { return world >> level; }
  // No partition is faster: all sequences at their cheapest degree, spread over all ranks.
  double least_time() const;
};

// The time of a cell with its part of what a critical path adds to a group that ends at `time`: all
// of it for a sequence that fills more than half of the group, else as much as it fills.
double with_path(const LinearCosts& linear, std::size_t bucket, std::size_t level, double time);

// `most`: buckets.
LinearCosts linear_costs(CostTable& costs, std::size_t most = 16);

}  // namespace nsp
