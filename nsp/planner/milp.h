// A mixed-integer linear program as a value, and its solver, which may be missing from a build
// (milp_highs.cpp or no_milp.cpp, chosen by cmake/Highs.cmake).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nsp {

// Minimise the sum of cost x value over the columns, every row's sum within its limits.
struct Milp {
  struct Column {
    double cost = 0;
    double lower = 0;
    double upper = 0;
    bool integer = true;
  };
  struct Entry {
    std::size_t column = 0;
    double factor = 0;
  };
  struct Row {
    double lower = 0;
    double upper = 0;
    std::vector<Entry> entries;  // each column at most once
  };
  static constexpr double kInfinity = 1e30;

  std::vector<Column> columns;
  std::vector<Row> rows;

  std::size_t add(const Column& column) {
    columns.push_back(column);
    return columns.size() - 1;
  }
};

// Work is limited in steps, never by a clock, so that the same program has the same answer.
struct MilpLimits {
  std::int64_t nodes = 1000;  // of branch and bound; 0: the root only
  double gap = 1e-4;          // stop when the incumbent is proven to be within this part of optimal
  double effort = 0.05;       // part of the work that goes into heuristics
};

struct MilpAnswer {
  // Of the best solution found, integers exact; empty: none was found, or the solver refused the
  // program (factors beyond its range) or failed on it.
  std::vector<double> values;
  double objective = 0;
  bool optimal = false;  // proven within the gap
};

// Whether this build has a solver; without, the other two throw BadInput that says how to get one.
bool has_milp();
void require_milp();

// `start`: a value for each column, where the search begins if it is feasible; may be empty.
// Several threads may call it at once.
MilpAnswer solve_milp(const Milp& milp,
                      const MilpLimits& limits,
                      const std::vector<double>& start = {});

}  // namespace nsp
