#include "nsp/cost/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "nsp/base/error.h"
#include "nsp/cost/exact.h"
#include "nsp/cost/launch_law.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;

std::int64_t rounded(double value) {
  return std::llround(value);
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

CostModel::CostModel(const ModelShape& shape, const Profile& profile, std::int32_t ranks_per_host)
    : shape_(shape),
      forward_(profile.attention_forward),
      backward_(profile.attention_backward),
      ranks_per_host_(ranks_per_host),
      dense_token_{.forward = rounded(profile.dense_forward.token_seconds * 1e12),
                   .backward = rounded(profile.dense_backward.token_seconds * 1e12)},
      dense_fixed_{.forward = rounded(profile.dense_forward.fixed_seconds * 1e9),
                   .backward = rounded(profile.dense_backward.fixed_seconds * 1e9)},
      link_bytes_per_second_{rounded(profile.inside.bytes_per_second),
                             rounded(profile.between.bytes_per_second)},
      link_latency_{rounded(profile.inside.latency_seconds * 1e9),
                    rounded(profile.between.latency_seconds * 1e9)},
      lm_head_token_(rounded(profile.lm_head_token_seconds * 1e12)) {
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

SequenceCost CostModel::sequence(std::int64_t tokens, const Way& way) const {
  if (way != head_split(way.degree)) {
    bad_input("backend", name(way.backend), "has no cost at this degree; use local or ulysses");
  }
  return sequence(tokens, way.degree);
}

SequenceCost CostModel::sequence(std::int64_t tokens, std::int32_t degree) const {
  const std::int64_t heads = shape_.heads / degree;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, kv_copies_[level(degree)] / degree);
  const bool grouped = heads > kv_heads;
  const std::int64_t qkv = traffic(qkv_bytes(tokens, degree), degree);
  const std::int64_t output = traffic(output_bytes(tokens, degree), degree);
  return {.prologue = {.forward = qkv, .backward = output},
          .compute = {.forward = forward_.work(tokens, heads, kv_heads),
                      .backward = backward_.work(tokens, heads, kv_heads)},
          .path = {.forward = forward_.path(tokens, grouped),
                   .backward = backward_.path(tokens, grouped)},
          .epilogue = {.forward = output, .backward = qkv}};
}

Passes CostModel::node_fixed(std::int32_t degree) const {
  const std::int64_t exchange = degree == 1 ? 0 : 2 * link_latency_[degree > ranks_per_host_];
  return {.forward = exchange + forward_.launch(), .backward = exchange + backward_.launch()};
}

PhaseCost CostModel::phases(const Way& way, const NodeSums& sums) const {
  const std::int64_t latency = way.degree == 1 ? 0 : link_latency_[way.degree > ranks_per_host_];
  PhaseCost cost{.prologue = {latency, latency},
                 .compute = {forward_.launch(), backward_.launch()},
                 .epilogue = {latency, latency}};
  cost.prologue += sums.prologue;
  cost.compute += {.forward = launch_law(sums.work.forward, sums.path.forward),
                   .backward = launch_law(sums.work.backward, sums.path.backward)};
  cost.epilogue += sums.epilogue;
  return cost;
}

Passes CostModel::node(std::int32_t degree,
                       const Passes& work,
                       const Passes& path,
                       const Passes& traffic) const {
  Passes cost = node_fixed(degree);
  cost += traffic;
  cost += {.forward = launch_law(work.forward, path.forward),
           .backward = launch_law(work.backward, path.backward)};
  return cost;
}

// A rank holds L / degree tokens and keeps one part in `degree` of what it has for itself.
std::int64_t CostModel::sent_bytes(std::int64_t tokens,
                                   std::int32_t degree,
                                   std::int64_t heads) const {
  const Wide values = wide(tokens) * wide(degree - 1) * wide(heads) * wide(shape_.head_dim);
  return ceil_ratio(values * wide(shape_.bytes_per_value), std::int64_t{degree} * degree);
}

std::int64_t CostModel::qkv_bytes(std::int64_t tokens, std::int32_t degree) const {
  return sent_bytes(tokens, degree, shape_.heads + 2 * kv_copies_[level(degree)]);
}

std::int64_t CostModel::output_bytes(std::int64_t tokens, std::int32_t degree) const {
  return sent_bytes(tokens, degree, shape_.heads);
}

std::int64_t CostModel::traffic(std::int64_t bytes, std::int32_t degree) const {
  return ceil_ratio(wide(bytes) * wide(kNano), link_bytes_per_second_[degree > ranks_per_host_]);
}

Passes CostModel::dense(std::int64_t tokens) const {
  return {.forward = ceil_ratio(wide(tokens) * wide(dense_token_.forward), 1000),
          .backward = ceil_ratio(wide(tokens) * wide(dense_token_.backward), 1000)};
}

std::int64_t CostModel::round_step(const Passes& load,
                                   std::int64_t tokens_max,
                                   std::int32_t world) const {
  const std::int64_t gather = gather_ / world * (world - 1);
  const std::int64_t scatter = scatter_ / world * (world - 1);
  const std::int64_t layer =
      std::max(load.forward, gather) + std::max(load.backward, gather + scatter);
  return shape_.layers * layer + ceil_ratio(wide(tokens_max) * wide(lm_head_token_), 1000);
}

std::int64_t CostModel::optimizer(std::int32_t world) const {
  return optimizer_ / world;
}

std::int64_t CostModel::attention_output_bytes(std::int64_t tokens) const {
  return ceil_ratio(wide(tokens) * wide(shape_.heads * shape_.head_dim), 1) *
         shape_.bytes_per_value;
}

}  // namespace nsp
