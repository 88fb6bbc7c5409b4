#include "nsp/planner/bound_area.h"

#include <algorithm>
#include <functional>

namespace nsp {
namespace {

// Most tokens that a slice has beyond L / degree: zigzag cuts two pieces, usp each of them again.
std::int64_t slack(const Way& way) {
  return way == head_split(way.degree) ? 1 : 4;
}

// A node over ranks of which some are paid in time and the others in tokens: a rank's slice may be
// some tokens longer than L / degree, so k ranks with T tokens have
// k >= T * degree / (L + slack * degree).
std::int64_t straddled(std::int64_t seconds, std::int64_t tokens, const Way& way) {
  const std::int64_t longer = tokens + slack(way) * way.degree;
  return way.degree == 1 ? seconds
                         : static_cast<std::int64_t>(wide(seconds) * wide(tokens) / wide(longer));
}

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

DegreeCost cost_of(const CostModel& model, std::int64_t tokens, const Way& way) {
  const SequenceCost cost = model.sequence(tokens, way);
  NodeSums alone;
  alone.add(cost);
  Passes beside = cost.traffic();
  beside += cost.merge;
  const std::int64_t on_ranks = way.degree * (cost.compute.sum() + beside.sum());
  const std::int64_t dense =  // without rounding up: of one product a pass, or two
      std::max<std::int64_t>(0, model.dense(tokens).sum() - 2);
  return {.degree = way.degree,
          .alone = model.phases(way, alone).sum().sum() + dense_alone(model, tokens, way.degree),
          .area = on_ranks + dense,
          .straddled = straddled(on_ranks, tokens, way) + dense,
          .fixed = model.way_fixed(way).sum().sum()};
}

std::int64_t with_charge(std::int64_t area, std::int64_t fixed, std::int64_t room) {
  const Wide left = wide(std::max<std::int64_t>(1, room - fixed));
  return area + static_cast<std::int64_t>(wide(area) * wide(fixed) / left);
}

Wide with_charge(Wide area, std::int64_t fixed, std::int64_t room) {
  return area + area * wide(fixed) / wide(std::max<std::int64_t>(1, room - fixed));
}

std::int64_t least_of(const LengthCost& length,
                      std::int64_t room,
                      std::int64_t DegreeCost::* area) {
  std::int64_t least = kNever;
  for (const DegreeCost& cost : length.degrees) {
    if (cost.alone <= room) {
      least = std::min(least, with_charge(cost.*area, cost.fixed, room));
    }
  }
  return least;
}

// The degree of least area and least fixed seconds, if one is both.
const DegreeCost* cheapest(const LengthCost& length) {
  const auto best = std::ranges::min_element(length.degrees, {}, &DegreeCost::area);
  const auto fixed = std::ranges::min_element(length.degrees, {}, &DegreeCost::fixed);
  return best->fixed <= fixed->fixed ? &*best : nullptr;
}

}  // namespace

LengthCost length_cost(const CostModel& model,
                       std::int64_t tokens,
                       std::span<const Way> ways,
                       std::int64_t token_budget) {
  LengthCost length{.tokens = tokens, .count = 0, .degrees = {}};
  for (const Way& way : ways) {
    if (token_budget == 0 || (tokens + way.degree - 1) / way.degree <= token_budget ||
        way.degree == ways.back().degree) {
      length.degrees.push_back(cost_of(model, tokens, way));
    }
  }
  return length;
}

std::int64_t charged_area(const DegreeCost& cost, std::int64_t room) {
  return with_charge(cost.area, cost.fixed, room);
}

std::int64_t least_area(const LengthCost& length, std::int64_t room) {
  return least_of(length, room, &DegreeCost::area);
}

std::int64_t least_straddled(const LengthCost& length, std::int64_t room) {
  return least_of(length, room, &DegreeCost::straddled);
}

BatchArea::BatchArea(const CostModel& model,
                     std::span<const std::int64_t> tokens,
                     std::span<const Way> ways,
                     std::int64_t token_budget)
    : token_budget_(token_budget) {
  std::vector<std::int64_t> sorted(tokens.begin(), tokens.end());
  std::ranges::sort(sorted, std::greater{});
  for (const std::int64_t length : sorted) {
    if (open_.empty() || open_.back().tokens != length) {
      open_.push_back(length_cost(model, length, ways, token_budget));
    }
    ++open_.back().count;
  }
}

std::int64_t BatchArea::least(std::int32_t world) const {
  Wide area = 0;
  for (const LengthCost& length : open_) {
    const auto best = std::ranges::min_element(length.degrees, {}, &DegreeCost::area);
    area += wide(best->area) * wide(length.count);
  }
  return static_cast<std::int64_t>(area / wide(world));
}

void BatchArea::settle(std::int64_t room) {
  std::erase_if(open_, [&](const LengthCost& length) {
    const DegreeCost* const best = cheapest(length);
    const std::int64_t most = token_budget_ == 0 ? room : room / 4;
    if (best == nullptr || best->alone > most) {
      return false;
    }
    const std::int64_t least =
        std::ranges::min_element(length.degrees, {}, &DegreeCost::straddled)->straddled;
    Settled& settled = settled_[best->fixed];
    settled.area += wide(best->area) * wide(length.count);
    settled.steps.push_back({.straddled = least,
                             .tokens = length.tokens,
                             .sum_straddled = wide(least) * wide(length.count),
                             .sum_tokens = wide(length.tokens) * wide(length.count)});
    return true;
  });
  for (auto& [fixed, settled] : settled_) {
    std::ranges::sort(settled.steps, [](const Step& a, const Step& b) {
      return wide(a.straddled) * wide(b.tokens) < wide(b.straddled) * wide(a.tokens);
    });
    for (std::size_t i = 1; i < settled.steps.size(); ++i) {
      settled.steps[i].sum_straddled += settled.steps[i - 1].sum_straddled;
      settled.steps[i].sum_tokens += settled.steps[i - 1].sum_tokens;
    }
  }
}

Wide BatchArea::settled_area(std::int64_t room) const {
  Wide area = 0;
  for (const auto& [fixed, settled] : settled_) {
    area += with_charge(settled.area, fixed, room);
  }
  return area;
}

// With the charge c = 1 + fixed / (room - fixed), min(c a, p) = c min(a, p / c): rounding p / c
// down keeps the sum below the true one.
Wide BatchArea::settled_price(std::int64_t room, std::int64_t price) const {
  Wide sum = 0;
  for (const auto& [fixed, settled] : settled_) {
    const std::int64_t left = std::max<std::int64_t>(1, room - fixed);
    const Wide uncharged = wide(price) * wide(left) / wide(left + fixed);
    const auto first =  // that is paid in tokens
        std::ranges::partition_point(settled.steps, [&](const Step& step) {
          return wide(step.straddled) * wide(token_budget_) <= uncharged * wide(step.tokens);
        });
    Wide part = first == settled.steps.begin() ? 0 : std::prev(first)->sum_straddled;
    const Wide tokens = settled.steps.back().sum_tokens -
                        (first == settled.steps.begin() ? Wide{0} : std::prev(first)->sum_tokens);
    part += tokens * uncharged / wide(token_budget_);
    sum += with_charge(part, fixed, room);
  }
  return sum;
}

}  // namespace nsp
