#include "nsp/planner/marks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "nsp/base/error.h"
#include "nsp/cost/exact.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/make_plan.h"
#include "nsp/plan/way.h"
#include "nsp/planner/room.h"

namespace nsp {
namespace {

// Both orders are the same walk over differently sorted placements: where a whole node fits, so
// does each of its sequences in turn, and where it does not, the dearest that fit are kept.
struct Candidate {
  Placement* placement = nullptr;
  std::int64_t recompute = 0;  // nanoseconds of forward attention on each rank of the node

  // Over all ranks; the bytes of a sequence do not depend on its degree.
  Wide seconds_over_bytes(const Candidate& other) const {
    return wide(recompute) * wide(placement->node.degree) * wide(other.placement->tokens);
  }
};

// What saving spares is the share of the launch: the exchanges only move, since backward then
// brings q, k, v and the output into head layout in one exchange of its own.
std::int64_t recompute_of(const CostModel& model, const Placement& placement) {
  return model.sequence(placement.tokens, way_of(placement)).compute.forward;
}

bool by_tree(const Candidate& a, const Candidate& b) {
  const Node& one = a.placement->node;
  const Node& two = b.placement->node;
  if (one.degree != two.degree) {
    return one.degree > two.degree;
  }
  return one.first_rank != two.first_rank ? one.first_rank < two.first_rank
                                          : a.recompute > b.recompute;
}

bool by_seconds_per_byte(const Candidate& a, const Candidate& b) {
  return a.seconds_over_bytes(b) > b.seconds_over_bytes(a);
}

std::vector<Candidate> candidates(Round& round, const CostModel& model, MarkOrder order) {
  std::vector<Candidate> sorted;
  sorted.reserve(round.placements.size());
  for (Placement& placement : round.placements) {
    placement.mark = Mark::kRecompute;
    if (keeps_output(placement.backend)) {
      sorted.push_back({.placement = &placement, .recompute = recompute_of(model, placement)});
    }
  }
  std::ranges::stable_sort(  // ties: lower sequence first
      sorted,
      order == MarkOrder::kTree ? by_tree : by_seconds_per_byte);
  return sorted;
}

// Bytes are tokens times a constant, so a room of tokens is exact.
Room device_room(std::int32_t world, const MarkRule& rule) {
  return Room(std::vector<std::int64_t>(static_cast<std::size_t>(world),
                                        rule.byte_budget / rule.token_bytes));
}

Room host_room(const Round& round,
               std::int32_t world,
               const CostModel& model,
               const MarkRule& rule) {
  std::vector<std::int64_t> tokens = hidden_bytes(round, world, model);
  for (std::int64_t& most : tokens) {
    most = std::min(most, rule.host_budget) / rule.output_bytes;
  }
  return Room(std::move(tokens));
}

// Of what is still recomputed, as much as the host takes.
void mark_offloaded(std::vector<Candidate> left, Room room) {
  std::ranges::stable_sort(left, by_seconds_per_byte);
  for (const Candidate& candidate : left) {
    if (candidate.placement->mark == Mark::kRecompute && room.take(*candidate.placement)) {
      candidate.placement->mark = Mark::kOffload;
    }
  }
}

bool on_device(Mark mark) {
  return mark == Mark::kSave || mark == Mark::kSaveQkv;
}

// Tokens by rank of the round's placements of `degree` (0: of any) whose mark is counted.
template <class Counts>
std::vector<std::int64_t> marked_tokens(const Round& round,
                                        std::int32_t world,
                                        std::int32_t degree,
                                        Counts counts) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(world), 0);
  for (const Placement& placement : round.placements) {
    if (!counts(mark_of(placement)) || (degree != 0 && placement.node.degree != degree)) {
      continue;
    }
    for (std::int32_t i = 0; i < placement.node.degree; ++i) {
      const std::int32_t rank = placement.node.first_rank + i;
      tokens[static_cast<std::size_t>(rank)] += owned_tokens(placement, rank);
    }
  }
  return tokens;
}

template <class Counts>
std::vector<std::int64_t> most_bytes(const Plan& plan, std::int64_t token_bytes, Counts counts) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(plan.world), 0);
  for (const Round& round : plan.rounds) {
    const std::vector<std::int64_t> tokens = marked_tokens(round, plan.world, 0, counts);
    std::ranges::transform(tokens, bytes, bytes.begin(), [&](std::int64_t kept, std::int64_t most) {
      return std::max(most, kept * token_bytes);
    });
  }
  return bytes;
}

}  // namespace

std::int64_t saved_token_bytes(const ModelShape& shape) {
  constexpr std::int64_t kLogSumExpBytes = 4;  // a float in every kernel
  return output_token_bytes(shape) + shape.heads * kLogSumExpBytes;
}

std::int64_t output_token_bytes(const ModelShape& shape) {
  return shape.heads * shape.head_dim * shape.bytes_per_value;
}

void mark_recompute(Plan& plan, const CostModel& model, const MarkRule& rule) {
  for (Round& round : plan.rounds) {
    Room room = device_room(plan.world, rule);
    const std::vector<Candidate> sorted = candidates(round, model, rule.order);
    for (const Candidate& candidate : sorted) {
      if (room.take(*candidate.placement)) {
        candidate.placement->mark = Mark::kSave;
      }
    }
    if (rule.host_budget > 0) {
      mark_offloaded(sorted, host_room(round, plan.world, model, rule));
    }
  }
  seal(plan);
}

std::vector<std::int64_t> saved_bytes(const Plan& plan, std::int64_t token_bytes) {
  return most_bytes(plan, token_bytes, on_device);
}

std::vector<std::int64_t> offloaded_bytes(const Plan& plan, std::int64_t output_bytes) {
  return most_bytes(plan, output_bytes, [](Mark mark) { return mark == Mark::kOffload; });
}

std::vector<LevelSaved> saved_by_level(const Plan& plan,
                                       const CostModel& model,
                                       std::int64_t token_bytes) {
  std::map<std::int32_t, LevelSaved, std::greater<>> levels;
  for (const Round& round : plan.rounds) {
    for (const Placement& placement : round.placements) {
      LevelSaved& level = levels[placement.node.degree];
      const bool saved = mark_of(placement) != Mark::kRecompute;
      const double seconds = static_cast<double>(recompute_of(model, placement)) / 1e9 *
                             placement.node.degree / plan.world;
      level.degree = placement.node.degree;
      ++level.sequences;
      level.saved += saved ? 1 : 0;
      level.offloaded += mark_of(placement) == Mark::kOffload ? 1 : 0;
      level.seconds += seconds;
      level.seconds_saved += saved ? seconds : 0;
    }
    for (auto& [degree, level] : levels) {
      const std::int64_t most =
          std::ranges::max(marked_tokens(round, plan.world, degree, on_device));
      level.bytes_max = std::max(level.bytes_max, most * token_bytes);
    }
  }
  std::vector<LevelSaved> result;
  for (const auto& [degree, level] : levels) {
    result.push_back(level);
  }
  return result;
}

}  // namespace nsp
