#include "nsp/planner/bound_budget.h"

#include <algorithm>
#include <functional>

namespace nsp {
namespace {

using Signed = __int128;

constexpr std::int64_t kSteps = 24;  // values of v that are tried
constexpr std::size_t kDealt = 3;    // sequences that are dealt to rounds
constexpr Signed kFar = Signed{1} << 120;

Signed as_signed(Wide value) {
  return static_cast<Signed>(value);
}

// The open lengths in one room: what does not depend on the price.
struct Charged {
  std::int64_t tokens = 0;
  std::int64_t count = 0;
  std::int64_t straddled = 0;         // least area outside H
  std::vector<DegreeCost> degrees{};  // that fit, areas charged
};

std::vector<Charged> charge(const BatchArea& batch, std::int64_t room) {
  std::vector<Charged> result;
  for (const LengthCost& length : batch.open()) {
    Charged& one = result.emplace_back(Charged{.tokens = length.tokens, .count = length.count});
    one.straddled = least_straddled(length, room);
    for (const DegreeCost& cost : length.degrees) {
      if (cost.alone <= room) {
        one.degrees.push_back(cost);
        one.degrees.back().area = charged_area(cost, room);
      }
    }
  }
  return result;
}

// min(a, v L / B)
std::int64_t least_price(const Charged& length, const BoundWorld& world, std::int64_t price) {
  const Wide tokens = wide(price) * wide(length.tokens) / wide(world.token_budget);
  return tokens < wide(length.straddled) ? static_cast<std::int64_t>(tokens) : length.straddled;
}

// Whether `excess(v)` is above 0 for some v of a grid, or near the best of it.
bool any_above(std::int64_t room, const std::function<Signed(std::int64_t)>& excess) {
  std::int64_t best = 0;
  Signed most = -kFar;
  const auto look = [&](std::int64_t price) {
    const Signed here = price < 0 || price > room ? -kFar : excess(price);
    if (here > most) {
      most = here;
      best = price;
    }
    return most > 0;
  };
  for (std::int64_t i = 1; i <= kSteps; ++i) {
    if (look(room / kSteps * i)) {
      return true;
    }
  }
  for (std::int64_t step = room / kSteps / 2; step > room / 4096; step /= 2) {
    const std::int64_t middle = best;
    if (look(middle - step) || look(middle + step)) {
      return true;
    }
  }
  return false;
}

// The least of a - degree (room - v); the length fits at some degree.
Signed least_beyond(const Charged& length, std::int64_t room, std::int64_t price) {
  Signed least = kFar;
  for (const DegreeCost& cost : length.degrees) {
    least = std::min(least, cost.area - Signed{cost.degree} * (room - price));
  }
  return least;
}

// The least left side minus right side of (*) over all ways to deal `longest` to rounds and
// degrees.
class Deal {
 public:
  Deal(const std::vector<const Charged*>& longest,
       const BoundWorld& world,
       std::int64_t room,
       std::int64_t price)
      : longest_(longest),
        world_(world),
        room_(room),
        price_(price),
        area_left_(longest.size() + 1, 0) {
    for (std::size_t i = longest.size(); i-- > 0;) {
      area_left_[i] =
          area_left_[i + 1] + std::ranges::min(longest[i]->degrees, {}, &DegreeCost::area).area;
    }
  }

  Signed least() {
    place(0, 0, 0);
    return least_;
  }

 private:
  struct Round {
    std::int64_t lasts = 0;
    std::int32_t ranks = 0;
  };

  void place(std::size_t next, Signed area, std::int64_t lasts);
  void settle(Signed area);

  const std::vector<const Charged*>& longest_;
  const BoundWorld& world_;
  std::int64_t room_;
  std::int64_t price_;
  std::vector<Signed> area_left_;  // least of the sequences from this one on
  std::vector<Round> rounds_;
  Signed least_ = kFar;
};

void Deal::settle(Signed area) {
  for (const Round& round : rounds_) {
    const std::int64_t others = std::max(0, world_.world - round.ranks);
    area += Signed{others} * std::max<std::int64_t>(0, round.lasts - price_);
  }
  least_ = std::min(least_, area);
}

// `lasts`: of all rounds; it only grows, and what settle() adds is never below 0.
void Deal::place(std::size_t next, Signed area, std::int64_t lasts) {
  if (lasts > room_ || area + area_left_[next] >= least_) {
    return;
  }
  if (next == longest_.size()) {
    settle(area);
    return;
  }
  for (const DegreeCost& cost : longest_[next]->degrees) {
    const Signed with = area + cost.area;
    const std::size_t open = rounds_.size();
    std::size_t r = 0;
    while (r < open) {  // by index: the rounds grow and shrink below
      const Round before = rounds_[r];
      rounds_[r] = {.lasts = std::max(before.lasts, cost.alone),
                    .ranks = before.ranks + cost.degree};
      place(next + 1, with, lasts + rounds_[r].lasts - before.lasts);
      rounds_[r++] = before;
    }
    rounds_.push_back({.lasts = cost.alone, .ranks = cost.degree});
    place(next + 1, with, lasts + cost.alone);
    rounds_.pop_back();
  }
}

}  // namespace

bool refuted_in_one(const BatchArea& batch, const BoundWorld& world, std::int64_t room) {
  const std::vector<Charged> open = charge(batch, room);
  return any_above(room, [&](std::int64_t price) {
    Signed sum = as_signed(batch.settled_price(room, price));
    for (const Charged& length : open) {
      const Signed outside = least_price(length, world, price);
      sum += length.count * std::max(outside, least_beyond(length, room, price));
    }
    return sum - Signed{world.world} * price;
  });
}

bool refuted_in_several(const BatchArea& batch, const BoundWorld& world, std::int64_t room) {
  const std::vector<Charged> open = charge(batch, room);
  std::vector<const Charged*> longest;
  for (const Charged& length : open) {
    for (std::int64_t i = 0; i < length.count && longest.size() < kDealt; ++i) {
      longest.push_back(&length);
    }
  }
  return any_above(room, [&](std::int64_t price) {
    Signed others = as_signed(batch.settled_price(room, price)) - Signed{world.world} * room;
    for (const Charged& length : open) {
      others += Signed{length.count} * least_price(length, world, price);
    }
    Signed most = -kFar;
    for (std::size_t count = 1; count <= longest.size(); ++count) {
      others -= least_price(*longest[count - 1], world, price);
      const std::vector<const Charged*> dealt(longest.begin(),
                                              longest.begin() + static_cast<std::ptrdiff_t>(count));
      most = std::max(most, others + Deal(dealt, world, room, price).least());
    }
    return most;
  });
}

}  // namespace nsp
