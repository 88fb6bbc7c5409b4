#include "nsp/planner/baselines/flexsp/counts.h"

#include <algorithm>
#include <cmath>

#include "nsp/planner/milp.h"

namespace nsp {
namespace {

// Columns: groups of each level, then the sequences of each bucket at each level.
class Counts {
 public:
  Counts(const LinearCosts& linear, double time) : linear_(linear), time_(time) {
    add_columns();
    add_ranks();
    for (std::size_t l = 0; l < linear.levels; ++l) {
      add_room(l);
      for (int parts = 2; parts <= 4; ++parts) {
        add_whole(l, parts);
      }
    }
    for (std::size_t k = 0; k < linear.buckets(); ++k) {
      add_bucket(k);
    }
  }

  std::optional<Partition> solve();

 private:
  std::size_t groups(std::size_t level) const { return level; }
  std::size_t sequences(std::size_t bucket, std::size_t level) const {
    return linear_.levels + bucket * linear_.levels + level;
  }
  double room(std::size_t level) const { return time_ - linear_.fixed[level]; }
  double time(std::size_t bucket, std::size_t level) const {
    return with_path(linear_, bucket, level, time_);
  }
  void add_columns();
  void add_ranks();
  void add_room(std::size_t level);
  void add_whole(std::size_t level, int parts);
  void add_bucket(std::size_t bucket);

  const LinearCosts& linear_;
  double time_;
  Milp milp_;
};

void Counts::add_columns() {
  for (std::size_t l = 0; l < linear_.levels; ++l) {
    milp_.add({.cost = double(1U << l), .upper = static_cast<double>(linear_.groups(l))});
  }
  for (std::size_t k = 0; k < linear_.buckets(); ++k) {
    for (std::size_t l = 0; l < linear_.levels; ++l) {
      const LinearCosts::Cell& cell = linear_.at(k, l);
      const bool open = cell.allowed && time(k, l) <= room(l);
      milp_.add({.upper = open ? static_cast<double>(linear_.count[k]) : 0});
    }
  }
}

void Counts::add_ranks() {
  Milp::Row row{.lower = 0, .upper = static_cast<double>(linear_.world), .entries = {}};
  for (std::size_t l = 0; l < linear_.levels; ++l) {
    row.entries.push_back({.column = groups(l), .factor = double(1U << l)});
  }
  milp_.rows.push_back(std::move(row));
}

// Time and tokens of a level's sequences within those of its groups, in parts of a group.
void Counts::add_room(std::size_t level) {
  Milp::Row seconds{
      .lower = -Milp::kInfinity, .upper = 0, .entries = {{.column = groups(level), .factor = -1}}};
  Milp::Row tokens = seconds;
  const auto budget = static_cast<double>(linear_.token_budget);
  for (std::size_t k = 0; k < linear_.buckets() && room(level) > 0; ++k) {
    seconds.entries.push_back(
        {.column = sequences(k, level), .factor = time(k, level) / room(level)});
    tokens.entries.push_back(
        {.column = sequences(k, level), .factor = linear_.at(k, level).tokens / budget});
  }
  milp_.rows.push_back(std::move(seconds));
  milp_.rows.push_back(std::move(tokens));
}

// A group holds fewer than `parts` sequences that each fill more than 1 / parts of it.
void Counts::add_whole(std::size_t level, int parts) {
  Milp::Row row{.lower = -Milp::kInfinity, .upper = 0, .entries = {}};
  row.entries.push_back({.column = groups(level), .factor = 1.0 - parts});
  for (std::size_t k = 0; k < linear_.buckets(); ++k) {
    const LinearCosts::Cell& cell = linear_.at(k, level);
    if (time(k, level) * parts > room(level) ||
        cell.tokens * parts > static_cast<double>(linear_.token_budget)) {
      row.entries.push_back({.column = sequences(k, level), .factor = 1});
    }
  }
  if (row.entries.size() > 1) {
    milp_.rows.push_back(std::move(row));
  }
}

void Counts::add_bucket(std::size_t bucket) {
  const auto count = static_cast<double>(linear_.count[bucket]);
  Milp::Row row{.lower = count, .upper = count, .entries = {}};
  for (std::size_t l = 0; l < linear_.levels; ++l) {
    row.entries.push_back({.column = sequences(bucket, l), .factor = 1});
  }
  milp_.rows.push_back(std::move(row));
}

// The first solution will do: whatever uses no more ranks than there are.
std::optional<Partition> Counts::solve() {
  const MilpAnswer answer = solve_milp(milp_, {.nodes = 100, .gap = 1});
  if (answer.values.empty()) {
    return std::nullopt;
  }
  Partition partition{.groups = {}, .kinds = linear_.levels, .quota = {}};
  std::int64_t left = linear_.world;
  for (std::size_t l = linear_.levels; l-- > 0;) {
    const auto count = std::llround(answer.values[groups(l)]);
    partition.groups.insert(partition.groups.end(), static_cast<std::size_t>(count), {l, l});
    left -= count << l;
  }
  // Ranks that the program did not need are leaves, which may take a share of the leaves' work.
  partition.groups.insert(partition.groups.end(), static_cast<std::size_t>(left), {0, 0});
  for (std::size_t k = 0; k < linear_.buckets(); ++k) {
    for (std::size_t l = 0; l < linear_.levels; ++l) {
      partition.quota.push_back(std::llround(answer.values[sequences(k, l)]));
    }
  }
  return partition;
}

}  // namespace

std::optional<Partition> partition_by_counts(const LinearCosts& linear, double time) {
  return Counts(linear, time).solve();
}

}  // namespace nsp
