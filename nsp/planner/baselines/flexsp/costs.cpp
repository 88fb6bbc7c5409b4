#include "nsp/planner/baselines/flexsp/costs.h"

#include <algorithm>

#include "nsp/cost/launch_law.h"

namespace nsp {
namespace {

LinearCosts::Cell cell_of(CostTable& costs, std::size_t begin, std::size_t end, std::size_t level) {
  const Problem& problem = costs.problem();
  const std::int64_t degree = std::int64_t{1} << level;
  const auto slice = [&](std::size_t i) {
    return (problem.sequences[i].tokens + degree - 1) / degree;
  };
  std::int64_t time = 0;
  std::int64_t tokens = 0;
  std::int64_t work = 0;
  for (std::size_t i = begin; i < end; ++i) {
    time += costs.share(i, level);
    tokens += slice(i);
    work += costs.at(i, level).work.sum();
  }
  const auto count = static_cast<double>(end - begin);
  return {.time = static_cast<double>(time) / count,
          .tokens = static_cast<double>(tokens) / count,
          .work = static_cast<double>(work) / count,
          .path = static_cast<double>(costs.at(begin, level).path.sum()),
          .allowed = slice(begin) <= problem.token_budget};
}

}  // namespace

double LinearCosts::least_time() const {
  double area = 0;
  for (std::size_t k = 0; k < buckets(); ++k) {
    double least = 1e300;
    for (std::size_t l = 0; l < levels; ++l) {
      least = at(k, l).allowed ? std::min(least, at(k, l).time * double(1U << l)) : least;
    }
    area += least * static_cast<double>(count[k]);
  }
  return fixed.front() + area / world;
}

// The group's work is taken to be in its time what it is in the sequence's.
double with_path(const LinearCosts& linear, std::size_t bucket, std::size_t level, double time) {
  const LinearCosts::Cell& cell = linear.at(bucket, level);
  const double room = time - linear.fixed[level];
  if (room <= cell.time || cell.work <= 0) {
    return cell.time;
  }
  const double fill = cell.time / room;
  const auto work = static_cast<std::int64_t>(cell.work / fill);
  const auto added =
      static_cast<double>(launch_law(work, static_cast<std::int64_t>(cell.path)) - work);
  return cell.time + (fill > 0.5 ? added : added * fill);
}

LinearCosts linear_costs(CostTable& costs, std::size_t most) {
  const Problem& problem = costs.problem();
  LinearCosts linear{.world = problem.world,
                     .token_budget = problem.token_budget,
                     .levels = costs.levels(),
                     .ends = cut_buckets(tokens_of(problem.sequences), most),
                     .count = {},
                     .cells = {},
                     .fixed = {}};
  std::size_t begin = 0;
  for (const std::size_t end : linear.ends) {
    linear.count.push_back(static_cast<std::int64_t>(end - begin));
    for (std::size_t l = 0; l < linear.levels; ++l) {
      linear.cells.push_back(cell_of(costs, begin, end, l));
    }
    begin = end;
  }
  for (std::size_t l = 0; l < linear.levels; ++l) {
    const Passes fixed = problem.model->way_fixed(head_split(std::int32_t{1} << l)).sum();
    linear.fixed.push_back(static_cast<double>(fixed.sum() + problem.model->dense_fixed().sum()));
  }
  return linear;
}

}  // namespace nsp
