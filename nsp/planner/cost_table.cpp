#include "nsp/planner/cost_table.h"

namespace nsp {

CostTable::CostTable(const Problem& problem)
    : problem_(problem),
      levels_(problem.model->allowed_degrees(problem.sp_max).size()),
      shares_(problem.sequences.size() * levels_),
      known_(shares_.size(), 0) {}

const NodeShare& CostTable::at(std::size_t sequence, std::size_t level) {
  const std::size_t cell = sequence * levels_ + level;
  if (known_[cell] != 0) {
    return shares_[cell];
  }
  known_[cell] = 1;
  const std::vector<Sequence>& sequences = problem_.sequences;
  const std::int64_t tokens = sequences[sequence].tokens;
  if (sequence > 0 && sequences[sequence - 1].tokens == tokens && known_[cell - levels_] != 0) {
    return shares_[cell] = shares_[cell - levels_];
  }
  const SequenceCost cost = problem_.model->sequence(tokens, std::int32_t{1} << level);
  NodeShare& share = shares_[cell];
  share = {.work = cost.compute, .path = cost.path, .traffic = cost.prologue};
  share.traffic += cost.epilogue;
  return share;
}

std::int64_t CostTable::share(std::size_t sequence, std::size_t level) {
  const std::int64_t dense = problem_.model->dense(problem_.sequences[sequence].tokens).sum();
  return at(sequence, level).sum() + (dense >> level);
}

std::int64_t CostTable::opening_share(std::size_t sequence, std::size_t level) {
  const NodeShare& cost = at(sequence, level);
  const std::int64_t dense = problem_.model->dense(problem_.sequences[sequence].tokens).sum();
  return problem_.model->node(std::int32_t{1} << level, cost.work, cost.path, cost.traffic).sum() +
         (dense >> level);
}

}  // namespace nsp
