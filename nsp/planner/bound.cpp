#include "nsp/planner/bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "nsp/cost/exact.h"
#include "nsp/planner/rounds.h"

namespace nsp {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Option {
  std::int64_t alone = 0;  // nanoseconds of its slowest rank when nothing else runs
  std::int64_t area = 0;   // nanoseconds x ranks, dense included
  std::int64_t fixed = 0;  // nanoseconds of a node of this degree, beside its sequences
};

// Every sequence of this length at the degrees that hold its tokens; the largest always counts.
struct Choices {
  std::int64_t count = 0;
  std::vector<Option> options;
};

// Dense nanoseconds of the slowest rank of a node whose sequence is alone in the world.
std::int64_t dense_alone(const CostModel& model, std::int64_t tokens, std::int32_t degree) {
  const std::int64_t slice = (tokens + degree - 1) / degree;
  if (model.ep() == 1) {
    return model.dense(slice).sum();
  }
  // Zigzag pieces may leave a group two tokens a rank short of its share.
  const std::int64_t least = std::max<std::int64_t>(0, tokens / std::max(degree, model.ep()) - 2);
  return model.dense_before(slice).sum() + model.experts(least * model.ep()).sum();
}

// Dense nanoseconds x ranks without rounding up: of one product a pass, or two.
std::int64_t dense_area(const CostModel& model, std::int64_t tokens) {
  return std::max<std::int64_t>(0, model.dense(tokens).sum() - 2);
}

Option option_of(const CostModel& model, std::int64_t tokens, const Way& way) {
  const SequenceCost cost = model.sequence(tokens, way);
  NodeSums alone;
  alone.add(cost);
  Passes beside = cost.traffic();
  beside += cost.merge;
  return {.alone = model.dense_fixed().sum() + model.phases(way, alone).sum().sum() +
                   dense_alone(model, tokens, way.degree),
          .area = way.degree * (cost.compute.sum() + beside.sum()) + dense_area(model, tokens),
          .fixed = model.way_fixed(way).sum().sum()};
}

Choices choices_of(const CostModel& model,
                   std::int64_t tokens,
                   std::span<const Way> ways,
                   std::int64_t token_budget) {
  Choices choices;
  for (const Way& way : ways) {
    if (token_budget == 0 || (tokens + way.degree - 1) / way.degree <= token_budget ||
        way.degree == ways.back().degree) {
      choices.options.push_back(option_of(model, tokens, way));
    }
  }
  return choices;
}

// Least nanoseconds x ranks of a sequence in a plan of this load; kNever if no degree fits under
// it.
std::int64_t least_area(const Choices& choices, std::int64_t load, std::int64_t dense_fixed) {
  std::int64_t least = kNever;
  for (const Option& option : choices.options) {
    if (option.alone <= load) {
      const std::int64_t room = std::max<std::int64_t>(1, load - dense_fixed - option.fixed);
      const Wide surcharge = wide(option.area) * wide(option.fixed) / wide(room);
      least = std::min(least, option.area + static_cast<std::int64_t>(surcharge));
    }
  }
  return least;
}

struct Batch {
  std::vector<Choices> choices;          // not settled yet
  std::map<std::int64_t, Wide> settled;  // by a node's fixed seconds: area of sequences whose
                                         // cheapest degree fits under any load from `least` on
  std::int64_t world = 1;
  std::int64_t dense_fixed = 0;
  std::int64_t all_fixed = 0;  // dense_fixed of the fewest rounds
  std::int64_t least = 0;      // a bound already: no surcharge, any degree

  void settle();
  bool can_reach(std::int64_t load) const;
};

std::int64_t cheapest(const Choices& choices) {
  return std::ranges::min_element(choices.options, {}, &Option::area)->area;
}

// An option of least area and least fixed seconds that fits is the choice under any load.
void Batch::settle() {
  Wide area = 0;
  for (const Choices& one : choices) {
    area += wide(cheapest(one)) * wide(one.count);
  }
  least = all_fixed + static_cast<std::int64_t>(area / wide(world));
  std::erase_if(choices, [&](const Choices& one) {
    for (const Option& option : one.options) {
      const bool best = std::ranges::all_of(one.options, [&](const Option& other) {
        return option.area <= other.area && option.fixed <= other.fixed;
      });
      if (best && option.alone <= least) {
        settled[option.fixed] += wide(option.area) * wide(one.count);
        return true;
      }
    }
    return false;
  });
}

bool Batch::can_reach(std::int64_t load) const {
  Wide area = wide(all_fixed) * wide(world);
  for (const auto& [fixed, sum] : settled) {
    const std::int64_t room = std::max<std::int64_t>(1, load - dense_fixed - fixed);
    area += sum + sum * wide(fixed) / wide(room);
  }
  for (const Choices& one : choices) {
    const std::int64_t smallest = least_area(one, load, dense_fixed);
    if (smallest == kNever) {
      return false;
    }
    area += wide(smallest) * wide(one.count);
  }
  return area <= wide(load) * wide(world);
}

Batch batch_of(const CostModel& model,
               std::span<const std::int64_t> tokens,
               std::int32_t sp_max,
               std::int64_t token_budget,
               std::span<const Backend> backends) {
  const std::vector<Way> ways = model.allowed_ways(sp_max, backends);
  std::vector<std::int64_t> sorted(tokens.begin(), tokens.end());
  std::ranges::sort(sorted, std::greater{});
  Batch batch{.choices = {}, .settled = {}, .dense_fixed = model.dense_fixed().sum()};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i] != sorted[i - 1]) {
      batch.choices.push_back(choices_of(model, sorted[i], ways, token_budget));
    }
    ++batch.choices.back().count;
  }
  return batch;
}

}  // namespace

std::int64_t lower_bound(const CostModel& model,
                         std::span<const std::int64_t> tokens,
                         std::int32_t world,
                         std::int32_t sp_max,
                         std::int64_t token_budget,
                         std::span<const Backend> backends) {
  if (tokens.empty()) {
    return 0;
  }
  Batch batch = batch_of(model, tokens, sp_max, token_budget, backends);
  std::int64_t sum = 0;
  for (const std::int64_t length : tokens) {
    sum += length;
  }
  batch.world = world;
  const std::int64_t rounds = token_budget == 0 ? 1 : least_rounds(sum, world, token_budget);
  batch.all_fixed = batch.dense_fixed * rounds;
  batch.settle();
  std::int64_t low = batch.least - 1;  // not reached
  std::int64_t high = batch.least;
  while (!batch.can_reach(high)) {
    low = high;
    high += high / 64 + 1;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (batch.can_reach(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace nsp
