#include "nsp/planner/baselines/megatron_schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "nsp/cost/exact.h"

namespace nsp {
namespace {

// Work and fill in units of 1 / largest: exact, since sizes are powers of two.
struct Group {
  Wide work = 0;
  std::int64_t fill = 0;
  std::int64_t cost = 0;     // least seconds of its ranks, only with a limit
  std::int64_t founder = 0;  // seconds of the first member alone
  MegatronGroup group;
};

struct Slot {
  std::size_t group = 0;  // == groups.size(): a new one
  std::int32_t size = 0;
};

class MicroBatch {
 public:
  MicroBatch(const MegatronSettings& settings, const MegatronLimit* limit)
      : settings_(settings), limit_(limit) {}

  // Whether the sequence found a place.
  bool place(std::size_t sequence, std::int64_t length);
  void fill_empty_ranks();
  MegatronBatch take();
  // What the limit's shares prove: once no rank is empty, groups keep their sizes and only grow.
  std::int64_t least_load() const;

 private:
  std::optional<Slot> best_slot(std::int64_t length) const;
  std::int32_t used() const {
    return groups_.empty() ? 0 : groups_.back().group.first_rank + groups_.back().group.size;
  }
  Wide work(std::int64_t length, std::int32_t size) const {
    return wide(length) * wide(length) * wide(settings_.largest / size);
  }
  std::int64_t fill(std::int64_t length, std::int32_t size) const {
    return settings_.whole_slices ? (length + size - 1) / size * settings_.largest
                                  : length * (settings_.largest / size);
  }

  const MegatronSettings& settings_;
  const MegatronLimit* limit_;
  std::vector<Group> groups_;
  Wide top_ = 0;
};

std::int64_t need(std::int64_t length, const MegatronSettings& settings) {
  const auto ranks = static_cast<std::uint64_t>((length + settings.tokens - 1) / settings.tokens);
  return std::max<std::int64_t>(settings.smallest, static_cast<std::int64_t>(std::bit_ceil(ranks)));
}

// Only a strictly smaller value replaces an earlier one: ties go to the smaller size, an existing
// group, the older group. No value is below `top_`, so the first that equals it ends the search.
std::optional<Slot> MicroBatch::best_slot(std::int64_t length) const {
  std::optional<Slot> best;
  Wide least = ~Wide{0};
  const auto offer = [&](std::size_t group, std::int32_t size, Wide work_after) {
    const Wide value = std::max(top_, work_after);
    if (value < least) {
      best = Slot{.group = group, .size = size};
      least = value;
    }
    return value == top_;
  };
  for (std::int64_t c = need(length, settings_); c <= settings_.largest; c *= 2) {
    const auto size = static_cast<std::int32_t>(c);
    const Wide more = work(length, size);
    const std::int64_t room = settings_.tokens * settings_.largest - fill(length, size);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].group.size == size && groups_[g].fill <= room &&
          offer(g, size, groups_[g].work + more)) {
        return best;
      }
    }
    if (settings_.world - used() >= size && offer(groups_.size(), size, more)) {
      return best;
    }
    if (groups_.empty()) {
      break;  // the founder gets its smallest size
    }
  }
  return best;
}

bool MicroBatch::place(std::size_t sequence, std::int64_t length) {
  const std::optional<Slot> slot = best_slot(length);
  if (!slot) {
    return false;
  }
  if (slot->group == groups_.size()) {
    groups_.push_back({.group = {.first_rank = used(), .size = slot->size, .members = {}}});
  }
  Group& group = groups_[slot->group];
  group.work += work(length, slot->size);
  group.fill += fill(length, slot->size);
  if (limit_ != nullptr) {
    group.cost += limit_->share(sequence, slot->size);
    group.founder =
        group.group.members.empty() ? limit_->alone(sequence, slot->size) : group.founder;
  }
  group.group.members.push_back(sequence);
  top_ = std::max(top_, group.work);
  return true;
}

// Groups stay aligned when sizes do not grow along the ranks, which holds for a world that is a
// power of two; a group that could not be enlarged leaves ranks empty.
void MicroBatch::fill_empty_ranks() {
  while (used() < settings_.world) {
    const auto size_of = [](const Group& group) { return group.group.size; };
    const auto smallest = std::ranges::min_element(groups_, {}, size_of);
    const std::int32_t more = smallest->group.size;
    if (2 * more > settings_.largest || used() + more > settings_.world ||
        smallest->group.first_rank % (2 * more) != 0) {
      return;
    }
    smallest->group.size += more;
    for (auto later = smallest + 1; later != groups_.end(); ++later) {
      later->group.first_rank += more;
    }
  }
}

std::int64_t MicroBatch::least_load() const {
  std::int64_t most = 0;
  for (const Group& group : groups_) {
    most = std::max({most, group.cost, group.founder});
  }
  return used() == settings_.world ? most + limit_->fixed : 0;
}

MegatronBatch MicroBatch::take() {
  MegatronBatch batch;
  for (Group& group : groups_) {
    batch.push_back(std::move(group.group));
  }
  return batch;
}

}  // namespace

std::vector<MegatronBatch> megatron_schedule(const std::vector<std::int64_t>& lengths,
                                             const MegatronSettings& settings,
                                             const MegatronLimit* limit) {
  constexpr std::size_t kOften = 32;
  std::vector<MegatronBatch> batches;
  std::vector<std::size_t> left(lengths.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::int64_t spent = 0;
  while (!left.empty()) {
    MicroBatch batch(settings, limit);
    std::vector<std::size_t> later;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!batch.place(left[i], lengths[left[i]])) {
        later.push_back(left[i]);
      }
      if (limit != nullptr && i % kOften == 0 && spent + batch.least_load() > limit->most) {
        return {};
      }
    }
    if (later.size() == left.size()) {
      return {};
    }
    spent += limit != nullptr ? batch.least_load() : 0;
    batch.fill_empty_ranks();
    batches.push_back(batch.take());
    left = std::move(later);
  }
  return batches;
}

}  // namespace nsp
