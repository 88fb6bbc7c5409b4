#include "nsp/sim/memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "nsp/plan/wave.h"
#include "nsp/plan/way.h"

namespace nsp {
namespace {

constexpr std::int64_t kWorkspaceBytes =
    12;  // a token, head and head_dim: fp32 dq, dk, dv partials
constexpr std::int64_t kStatisticsBytes = 4;  // log-sum-exp, a token and head

struct Values {  // a token
  std::int64_t hidden = 0;
  std::int64_t output = 0;
  std::int64_t qkv = 0;
  std::int64_t dense = 0;
};

Values values_of(const ModelShape& shape) {
  const std::int64_t output = shape.heads * shape.head_dim;
  const std::int64_t copies = std::max<std::int64_t>(1, shape.top_k);
  return {.hidden = shape.hidden,
          .output = output,
          .qkv = output + 2 * shape.kv_heads * shape.head_dim,
          .dense =
              8 * shape.hidden + 4 * output + copies * (2 * shape.hidden + 4 * shape.intermediate)};
}

// Tokens of one rank in one round.
struct Held {
  std::int64_t all = 0;
  std::int64_t exchanged = 0;
  std::int64_t saved = 0;      // marked save or save_qkv
  std::int64_t saved_qkv = 0;  // marked save_qkv
  std::map<std::pair<std::int32_t, Wave>, std::int64_t> launches{};

  std::int64_t largest_launch() const {
    std::int64_t most = 0;
    for (const auto& [wave, tokens] : launches) {
      most = std::max(most, tokens);
    }
    return most;
  }
};

std::vector<Held> held(const Round& round, std::int32_t world) {
  std::vector<Held> ranks(static_cast<std::size_t>(world));
  for (const Placement& p : round.placements) {
    // Every rank of a node within one token: an estimate needs no layout.
    const std::int64_t tokens = (p.tokens + p.node.degree - 1) / p.node.degree;
    for (std::int32_t i = 0; i < p.node.degree; ++i) {
      Held& rank = ranks[static_cast<std::size_t>(p.node.first_rank + i)];
      rank.all += tokens;
      rank.exchanged += p.node.degree > 1 ? tokens : 0;
      rank.saved += mark_of(p) != Mark::kRecompute ? tokens : 0;
      rank.saved_qkv += mark_of(p) == Mark::kSaveQkv ? tokens : 0;
      rank.launches[{p.node.degree, wave_of(p, round.schedule.cuts)}] += tokens;
    }
  }
  return ranks;
}

std::int64_t bytes_of(const Held& rank, const ModelShape& shape, Checkpointing checkpointing) {
  const Values values = values_of(shape);
  const std::int64_t value = shape.bytes_per_value;
  const std::int64_t whole =
      value * (rank.all * values.dense + rank.exchanged * (values.qkv + values.output));
  const std::int64_t workspace =
      kWorkspaceBytes * rank.largest_launch() * shape.heads * shape.head_dim;
  if (checkpointing == Checkpointing::kNone) {
    return shape.layers * whole + workspace;
  }
  std::int64_t kept = value * rank.all * values.hidden;
  if (checkpointing == Checkpointing::kMarks) {
    kept += rank.saved * (value * values.output + kStatisticsBytes * shape.heads) +
            value * rank.saved_qkv * values.qkv;
  }
  return shape.layers * kept + whole + workspace;
}

}  // namespace

std::vector<std::int64_t> memory_bytes(const Plan& plan,
                                       const ModelShape& shape,
                                       Checkpointing checkpointing) {
  std::vector<std::int64_t> most(static_cast<std::size_t>(plan.world), 0);
  for (const Round& round : plan.rounds) {
    const std::vector<Held> ranks = held(round, plan.world);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      most[rank] = std::max(most[rank], bytes_of(ranks[rank], shape, checkpointing));
    }
  }
  return most;
}

}  // namespace nsp
