#include "nsp/cost/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "nsp/base/error.h"
#include "nsp/cost/exact.h"

namespace nsp {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;

std::int64_t rounded(double value) {
  return std::llround(value);
}

// Rounded up; searches ask often, so what fits in 64 bits is divided by a constant.
std::int64_t nanoseconds(std::int64_t tokens, std::int64_t picoseconds) {
  const Wide product = wide(tokens) * wide(picoseconds);
  if (product < (Wide{1} << 55)) {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(product) + 999) / 1000);
  }
  return ceil_ratio(product, 1000);
}

Passes token_nanoseconds(std::int64_t tokens, const Passes& picoseconds) {
  return {.forward = nanoseconds(tokens, picoseconds.forward),
          .backward = nanoseconds(tokens, picoseconds.backward)};
}

// KV heads that a rank of the node attends with, summed over its ranks: query heads are dealt in
// consecutive blocks, a KV head goes wherever one of its query heads went.
std::int64_t kv_copies(const ModelShape& shape, std::int64_t degree) {
  const std::int64_t heads = shape.heads / degree;
  const std::int64_t group = shape.heads / shape.kv_heads;
  std::int64_t copies = 0;
  for (std::int64_t i = 0; i < degree; ++i) {
    copies += ((i + 1) * heads - 1) / group - i * heads / group + 1;
  }
  return copies;
}

}  // namespace

CostModel::CostModel(const ModelShape& shape,
                     const Profile& profile,
                     std::int32_t ranks_per_host,
                     std::int32_t ep)
    : shape_(shape),
      forward_(profile.attention_forward),
      backward_(profile.attention_backward),
      ranks_per_host_(ranks_per_host),
      ep_(ep),
      dense_token_{.forward = rounded(profile.dense_forward.token_seconds * 1e12),
                   .backward = rounded(profile.dense_backward.token_seconds * 1e12)},
      expert_token_{.forward = rounded(profile.dense_forward.expert_token_seconds * 1e12),
                    .backward = rounded(profile.dense_backward.expert_token_seconds * 1e12)},
      dense_fixed_{.forward = rounded(profile.dense_forward.fixed_seconds * 1e9),
                   .backward = rounded(profile.dense_backward.fixed_seconds * 1e9)},
      link_bytes_per_second_{rounded(profile.inside.bytes_per_second),
                             rounded(profile.between.bytes_per_second)},
      link_latency_{rounded(profile.inside.latency_seconds * 1e9),
                    rounded(profile.between.latency_seconds * 1e9)},
      merge_value_(rounded(profile.merge_value_seconds * 1e15)),
      host_bytes_per_second_(rounded(profile.host_bytes_per_second)),
      lm_head_token_(rounded(profile.lm_head_token_seconds * 1e12)) {
  if (ep > 1 && expert_token_.sum() == 0) {
    bad_input("ep",
              ep,
              "the profile of " + profile.model +
                  " has no expert_token_seconds in dense_forward and dense_backward; add them, or "
                  "plan with ep 1");
  }
  const std::int64_t fsdp = rounded(profile.fsdp.bytes_per_second);
  gather_ = ceil_ratio(wide(rounded(profile.fsdp.gather_bytes)) * wide(kNano), fsdp);
  scatter_ = ceil_ratio(wide(rounded(profile.fsdp.scatter_bytes)) * wide(kNano), fsdp);
  optimizer_ = ceil_ratio(
      wide(rounded(profile.parameters)) * wide(rounded(profile.optimizer_parameter_seconds * 1e15)),
      1'000'000);
  for (std::int64_t degree = 1; degree <= shape.heads && shape.heads % degree == 0; degree *= 2) {
    kv_copies_.push_back(kv_copies(shape, degree));
  }
}

std::vector<std::int32_t> allowed_degrees(std::int64_t heads, std::int32_t sp_max) {
  std::vector<std::int32_t> result;
  for (std::int32_t degree = 1; degree <= sp_max && heads % degree == 0; degree *= 2) {
    result.push_back(degree);
  }
  return result;
}

std::vector<std::int32_t> CostModel::allowed_degrees(std::int32_t sp_max) const {
  return nsp::allowed_degrees(shape_.heads, sp_max);
}

std::size_t CostModel::level(std::int32_t degree) const {
  const auto level = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(degree)));
  if (level >= kv_copies_.size()) {
    bad_input("degree",
              degree,
              "must divide the " + std::to_string(shape_.heads) +
                  " query heads; the largest allowed is " +
                  std::to_string(std::int64_t{1} << (kv_copies_.size() - 1)));
  }
  return level;
}

std::vector<Way> CostModel::allowed_ways(std::int32_t sp_max,
                                         std::span<const Backend> backends) const {
  return nsp::allowed_ways(
      {.heads = shape_.heads, .ranks_per_host = ranks_per_host_, .sp_max = sp_max}, backends);
}

SequenceCost CostModel::sequence(std::int64_t tokens, std::int32_t degree) const {
  return sequence(tokens, head_split(degree));
}

// The exchange of heads for tokens, and attention as if the inner ranks had the whole sequence: all
// there is for local and ulysses.
SequenceCost CostModel::split_heads(std::int64_t tokens, const Way& way) const {
  const std::int64_t inner = way.ulysses_degree;
  const std::int64_t heads = shape_.heads / inner;
  const std::int64_t copies = kv_copies_[level(way.ulysses_degree)];
  const std::int64_t kv_heads = std::max<std::int64_t>(1, copies / inner);
  const bool grouped = heads > kv_heads;
  const std::size_t over = link(way.ulysses_degree);
  const std::int64_t qkv = traffic(wide(sent_bytes(tokens, way, shape_.heads + 2 * copies)), over);
  const std::int64_t output = traffic(wide(sent_bytes(tokens, way, shape_.heads)), over);
  return {.prologue = {.forward = qkv, .backward = output},
          .compute = {.forward = forward_.work(tokens, heads, kv_heads),
                      .backward = backward_.work(tokens, heads, kv_heads)},
          .path = {.forward = forward_.path(tokens, grouped),
                   .backward = backward_.path(tokens, grouped)},
          .epilogue = {.forward = output, .backward = qkv}};
}

PhaseCost CostModel::phases(const Way& way, const NodeSums& sums) const {
  const WayFixed fixed = way_fixed(way);
  PhaseCost cost{.prologue = fixed.prologue,
                 .compute = compute_seconds(fixed, sums.work, sums.path, sums.streamed),
                 .epilogue = fixed.epilogue};
  cost.prologue += sums.prologue;
  cost.compute += sums.merge;
  cost.epilogue += sums.epilogue;
  return cost;
}

// A rank holds L / degree tokens and keeps one part in `ulysses_degree` of what it has for itself.
std::int64_t CostModel::sent_bytes(std::int64_t tokens, const Way& way, std::int64_t heads) const {
  const Wide values = wide(tokens) * wide(way.ulysses_degree - 1) * wide(heads * shape_.head_dim);
  return ceil_ratio(values * wide(shape_.bytes_per_value),
                    std::int64_t{way.degree} * way.ulysses_degree);
}

std::int64_t CostModel::traffic(Wide bytes, std::size_t link) const {
  return ceil_ratio(bytes * wide(kNano), link_bytes_per_second_[link]);
}

Passes CostModel::dense(std::int64_t tokens) const {
  return token_nanoseconds(tokens, dense_token_);
}

Passes CostModel::dense_before(std::int64_t tokens) const {
  return token_nanoseconds(tokens,
                           {.forward = dense_token_.forward - expert_token_.forward,
                            .backward = dense_token_.backward - expert_token_.backward});
}

Passes CostModel::experts(std::int64_t group_tokens) const {
  const std::int64_t ranks = 1000 * std::int64_t{ep_};
  return {.forward = ceil_ratio(wide(group_tokens) * wide(expert_token_.forward), ranks),
          .backward = ceil_ratio(wide(group_tokens) * wide(expert_token_.backward), ranks)};
}

std::int64_t CostModel::round_step(const Passes& load,
                                   std::int64_t tokens_max,
                                   std::int32_t world) const {
  const std::int64_t layer = std::max(load.forward, gather(world)) +
                             std::max(load.backward, gather(world) + scatter(world));
  return shape_.layers * layer + lm_head(tokens_max);
}

std::int64_t CostModel::host_bytes(std::int64_t nanoseconds) const {
  const Wide bytes =
      wide(nanoseconds) * wide(host_bytes_per_second_) / static_cast<Wide>(std::int64_t{kNano});
  return bytes < static_cast<Wide>(INT64_MAX) ? static_cast<std::int64_t>(bytes) : INT64_MAX;
}

std::int64_t CostModel::lm_head(std::int64_t tokens) const {
  return ceil_ratio(wide(tokens) * wide(lm_head_token_), 1000);
}

std::int64_t CostModel::optimizer(std::int32_t world) const {
  return optimizer_ / world;
}

}  // namespace nsp
