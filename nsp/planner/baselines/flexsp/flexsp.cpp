#include "nsp/planner/baselines/flexsp/flexsp.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nsp/planner/assignment.h"
#include "nsp/planner/baselines/flexsp/counts.h"
#include "nsp/planner/baselines/flexsp/exact.h"
#include "nsp/planner/baselines/flexsp/regroup.h"
#include "nsp/planner/bound.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

constexpr int kTimes = 10;            // steps of the bisection of a micro-batch's time
constexpr std::int64_t kExact = 600;  // columns up to which the MILP over single groups is tried
constexpr std::int64_t kNodes = 500;  // of its branch and bound
constexpr std::int64_t kGlance = 60'000;   // work of the local search of a candidate
constexpr int kSteps = 20;                 // partitions after the best candidate's
constexpr std::int64_t kSearch = 600'000;  // work of the last local search
constexpr std::int64_t kSweep = 4;         // micro-batches beyond the fewest

class OneRound {
 public:
  explicit OneRound(const Problem& problem)
      : problem_(problem), costs_(problem), linear_(linear_costs(costs_)), state_(costs_) {}

  void homogeneous();
  void bisect_time();
  void exact();
  Solution take();

 private:
  void offer(const std::vector<Node>& groups, const std::vector<Node>& placed);
  void offer(const Partition& partition) {
    offer(nodes_of(partition), deal(costs_, linear_, partition));
  }

  const Problem& problem_;
  CostTable costs_;
  LinearCosts linear_;
  Assignment state_;
  Grouping best_;
};

void OneRound::offer(const std::vector<Node>& groups, const std::vector<Node>& placed) {
  Grouping found = improved(state_, {.groups = groups, .placed = placed, .quality = {}}, kGlance);
  if (best_.placed.empty() || found.quality < best_.quality) {
    best_ = std::move(found);
  }
}

void OneRound::homogeneous() {
  for (std::size_t l = 0; l < linear_.levels; ++l) {
    const Grouping same = one_degree(problem_, std::int32_t{1} << l);
    offer(same.groups, same.placed);
  }
}

// A time that the program cannot keep rises, another falls.
void OneRound::bisect_time() {
  double low = linear_.least_time();
  auto high = static_cast<double>(best_.quality.load);
  for (int i = 0; i < kTimes && low < high; ++i) {
    const double time = low + (high - low) / 2;
    const std::optional<Partition> found = partition_by_counts(linear_, time);
    if (found) {
      offer(*found);
    }
    (found ? high : low) = time;
  }
}

void OneRound::exact() {
  const std::int64_t candidates = 2 * problem_.world - problem_.world / problem_.sp_max;
  if (candidates * std::ssize(linear_.ends) > kExact) {
    return;
  }
  const auto found =
      exact_partition(linear_, partition_of(linear_, best_.groups, best_.placed), kNodes);
  if (found) {
    offer(*found);
  }
}

Solution OneRound::take() {
  best_ = regroup(state_, std::move(best_), kSteps, kGlance);
  return score(problem_, improved(state_, best_, kSearch).placed);
}

std::vector<Problem> cut(const Problem& batch, std::int64_t count) {
  std::vector<Problem> parts;
  auto begin = batch.sequences.begin();
  for (const std::size_t end : cut_evenly(tokens_of(batch.sequences), count)) {
    parts.push_back(batch);
    const auto last = batch.sequences.begin() + static_cast<std::ptrdiff_t>(end);
    parts.back().sequences.assign(begin, last);
    begin = last;
  }
  return parts;
}

// Gives up, empty, once the parts solved and the bounds of the others reach `most`.
std::vector<Solution> solve_parts(const std::vector<Problem>& parts, std::int64_t most) {
  std::int64_t bound = 0;
  std::vector<std::int64_t> bounds;
  for (const Problem& part : parts) {
    bounds.push_back(lower_bound(part));
    bound += bounds.back();
  }
  std::vector<Solution> rounds;
  for (std::size_t i = 0; i < parts.size() && bound < most; ++i) {
    rounds.push_back(flexsp_round(parts[i]));
    bound += rounds.back().load - bounds[i];
  }
  return bound < most ? rounds : std::vector<Solution>{};
}

}  // namespace

Solution flexsp_round(const Problem& problem) {
  OneRound round(problem);
  round.homogeneous();
  round.bisect_time();
  round.exact();
  return round.take();
}

// A batch that none of the five holds takes more micro-batches: one with a single sequence always
// fits. Where the longest sequence decides, several M have the same cut.
std::vector<Solution> flexsp(const Problem& batch) {
  const std::int64_t tokens = sum_tokens(batch.sequences);
  const std::int64_t most = std::ssize(batch.sequences);
  const std::int64_t least = std::min(least_rounds(tokens, batch.world, batch.token_budget), most);
  std::vector<Solution> best;
  std::size_t tried = 0;
  for (std::int64_t count = least; count <= most; ++count) {
    const bool found = !best.empty() && all_feasible(best);
    if (count > least + kSweep && found) {
      break;
    }
    const std::vector<Problem> parts = cut(batch, count);
    std::vector<Solution> rounds;
    if (parts.size() != tried) {
      tried = parts.size();
      rounds = solve_parts(parts, found ? total_load(best) : INT64_MAX);
    }
    if (!rounds.empty() && (!found || all_feasible(rounds))) {
      best = std::move(rounds);
    }
    count += count > least + kSweep ? count / 8 : 0;
  }
  return best;
}

}  // namespace nsp
