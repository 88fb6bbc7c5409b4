#include "nsp/planner/baselines/flexsp/exact.h"

#include <algorithm>
#include <cmath>

#include "nsp/planner/milp.h"

namespace nsp {
namespace {

// Columns: T, then for each candidate its use and its sequences of each bucket. Times are in units
// of the start's, tokens in token budgets: all factors are near 1.
class Exact {
 public:
  Exact(const LinearCosts& linear, double unit) : linear_(linear), unit_(unit) {
    for (std::size_t l = linear.levels; l-- > 0;) {
      levels_.insert(levels_.end(), static_cast<std::size_t>(linear.groups(l)), l);
    }
    add_columns();
    add_buckets();
    add_ranks();
    for (std::size_t p = 0; p < levels_.size(); ++p) {
      add_group(p);
    }
    for (std::size_t p = 1; p < levels_.size(); ++p) {
      if (levels_[p] == levels_[p - 1]) {
        add_order(p);
      }
    }
  }

  std::vector<double> values_of(const Partition& start) const;
  MilpAnswer solve(const std::vector<double>& start, std::int64_t nodes) const {
    return solve_milp(milp_, {.nodes = nodes}, start);
  }
  Partition partition_of(const std::vector<double>& values) const;

 private:
  std::size_t use(std::size_t group) const { return 1 + group * (linear_.buckets() + 1); }
  std::size_t taken(std::size_t group, std::size_t bucket) const { return use(group) + 1 + bucket; }
  // The longest bucket that a level may take, or buckets().
  std::size_t longest(std::size_t level) const;
  void add_columns();
  void add_buckets();
  void add_ranks();
  void add_group(std::size_t group);
  void add_order(std::size_t group);

  const LinearCosts& linear_;
  double unit_;
  std::vector<std::size_t> levels_;  // of the candidates, largest first
  Milp milp_;
};

std::size_t Exact::longest(std::size_t level) const {
  std::size_t k = 0;
  while (k < linear_.buckets() && !linear_.at(k, level).allowed) {
    ++k;
  }
  return k;
}

void Exact::add_columns() {
  milp_.add({.cost = 1, .upper = Milp::kInfinity, .integer = false});
  for (const std::size_t level : levels_) {
    milp_.add({.upper = 1});
    for (std::size_t k = 0; k < linear_.buckets(); ++k) {
      milp_.add(
          {.upper = linear_.at(k, level).allowed ? static_cast<double>(linear_.count[k]) : 0});
    }
  }
}

void Exact::add_buckets() {
  for (std::size_t k = 0; k < linear_.buckets(); ++k) {
    const auto count = static_cast<double>(linear_.count[k]);
    Milp::Row row{.lower = count, .upper = count, .entries = {}};
    for (std::size_t p = 0; p < levels_.size(); ++p) {
      row.entries.push_back({.column = taken(p, k), .factor = 1});
    }
    milp_.rows.push_back(std::move(row));
  }
}

void Exact::add_ranks() {
  Milp::Row row{.lower = 0, .upper = static_cast<double>(linear_.world), .entries = {}};
  for (std::size_t p = 0; p < levels_.size(); ++p) {
    row.entries.push_back({.column = use(p), .factor = double(1U << levels_[p])});
  }
  milp_.rows.push_back(std::move(row));
}

void Exact::add_group(std::size_t group) {
  const std::size_t level = levels_[group];
  Milp::Row time{.lower = -Milp::kInfinity, .upper = 0, .entries = {}};
  Milp::Row tokens = time;
  time.entries = {{.column = 0, .factor = -1},
                  {.column = use(group), .factor = linear_.fixed[level] / unit_}};
  tokens.entries = {{.column = use(group), .factor = -1}};
  for (std::size_t k = 0; k < linear_.buckets(); ++k) {
    const LinearCosts::Cell& cell = linear_.at(k, level);
    time.entries.push_back({.column = taken(group, k), .factor = cell.time / unit_});
    tokens.entries.push_back({.column = taken(group, k),
                              .factor = cell.tokens / static_cast<double>(linear_.token_budget)});
  }
  milp_.rows.push_back(std::move(time));
  milp_.rows.push_back(std::move(tokens));
}

void Exact::add_order(std::size_t group) {
  Milp::Row row{
      .lower = 0,
      .upper = Milp::kInfinity,
      .entries = {{.column = use(group - 1), .factor = 1}, {.column = use(group), .factor = -1}}};
  milp_.rows.push_back(row);
  const std::size_t k = longest(levels_[group]);
  if (k < linear_.buckets()) {
    row.entries = {{.column = taken(group - 1, k), .factor = 1},
                   {.column = taken(group, k), .factor = -1}};
    milp_.rows.push_back(std::move(row));
  }
}

// Groups without sequences are unused; the others stand in the program's order.
std::vector<double> Exact::values_of(const Partition& start) const {
  std::vector<Partition::Group> groups;
  for (const Partition::Group& group : start.groups) {
    bool used = false;
    for (std::size_t k = 0; k < linear_.buckets(); ++k) {
      used = used || start.at(k, group.kind) > 0;
    }
    if (used) {
      groups.push_back(group);
    }
  }
  std::ranges::stable_sort(groups, [&](const Partition::Group& a, const Partition::Group& b) {
    const std::size_t k = longest(a.level);
    return a.level != b.level ? a.level > b.level
                              : k < linear_.buckets() && start.at(k, a.kind) > start.at(k, b.kind);
  });
  std::vector<double> values(milp_.columns.size(), 0);
  values[0] = linear_time(linear_, start) / unit_;
  std::size_t p = 0;
  for (const Partition::Group& group : groups) {
    while (levels_[p] != group.level) {
      ++p;
    }
    values[use(p)] = 1;
    for (std::size_t k = 0; k < linear_.buckets(); ++k) {
      values[taken(p, k)] = static_cast<double>(start.at(k, group.kind));
    }
    ++p;
  }
  return values;
}

Partition Exact::partition_of(const std::vector<double>& values) const {
  Partition partition;
  std::vector<std::size_t> used;
  std::int64_t left = linear_.world;
  for (std::size_t p = 0; p < levels_.size(); ++p) {
    if (values[use(p)] > 0.5) {
      partition.groups.push_back({.level = levels_[p], .kind = used.size()});
      used.push_back(p);
      left -= std::int64_t{1} << levels_[p];
    }
  }
  partition.kinds = used.size() + static_cast<std::size_t>(left);
  for (std::size_t g = used.size(); g < partition.kinds; ++g) {
    partition.groups.push_back({.level = 0, .kind = g});
  }
  partition.quota.assign(linear_.buckets() * partition.kinds, 0);
  for (std::size_t g = 0; g < used.size(); ++g) {
    for (std::size_t k = 0; k < linear_.buckets(); ++k) {
      partition.at(k, g) = std::llround(values[taken(used[g], k)]);
    }
  }
  return partition;
}

}  // namespace

std::optional<Partition> exact_partition(const LinearCosts& linear,
                                         const Partition& start,
                                         std::int64_t nodes) {
  const double time = linear_time(linear, start);
  const Exact exact(linear, time);
  const MilpAnswer answer = exact.solve(exact.values_of(start), nodes);
  if (answer.values.empty()) {
    return std::nullopt;
  }
  return exact.partition_of(answer.values);
}

}  // namespace nsp
