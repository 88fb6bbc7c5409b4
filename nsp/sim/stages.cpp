// A layer's stages, with overlap:
//
//   forward   begin | attention in issue order | dense
//   backward  begin | recompute: attention, dense | dense backward | attention backward | end
//
// begin waits for the layer's parameters, prologues for what begin or the dense part gives, dense
// and end for every exchange before them. A placement marked save hands its output on, but backward
// needs q, k, v and the output in head layout: they travel with the backward prologue's exchange
// (save_qkv: the output alone).
// Attention begins with the leaves that run first; no exchange waits for them.
#include "nsp/sim/stages.h"

#include <algorithm>
#include <utility>

#include "nsp/plan/way.h"

namespace nsp {
namespace {

struct Attention {
  std::vector<LevelTimes> levels;
  std::vector<NodeTimes> leaf_first;
};

Attention attention_of(const CostModel& model,
                       const Round& round,
                       std::int32_t world,
                       const Counts& counts) {
  return {.levels = level_times(model, round, world, counts),
          .leaf_first = leaf_first_times(model, round, world, counts)};
}

Attention whole(const RoundTimes& times) {
  return {.levels = times.levels, .leaf_first = times.leaf_first};
}

std::int32_t size(const std::vector<QueueStep>& steps) {
  return static_cast<std::int32_t>(steps.size());
}

QueueStep leaf_first_step(const std::vector<NodeTimes>& ranks, Activity activity, bool backward) {
  QueueStep step{.activity = activity, .backward = backward};
  for (const NodeTimes& rank : ranks) {
    step.nanoseconds.push_back(rank.active ? pass_of(rank.cost.compute, backward) : kPasses);
    step.backends.push_back(rank.backend);
  }
  return step;
}

QueueStep attention_step(const LevelTimes& level, Phase phase, Activity activity, bool backward) {
  QueueStep step{.activity = phase == Phase::kCompute ? activity : Activity::kExchange,
                 .degree = level.degree,
                 .joint = phase != Phase::kCompute,
                 .phase = phase,
                 .backward = backward};
  for (const NodeTimes& node : level.nodes) {
    step.nanoseconds.push_back(node.active ? pass_of(phase_of(node.cost, phase), backward)
                                           : kPasses);
    step.backends.push_back(node.backend);
  }
  return step;
}

// Appends one pass of attention to a stage; what is in the stage already comes before it.
class AttentionPart {
 public:
  AttentionPart(Stage& stage, const Attention& attention, bool serial)
      : stage_(stage),
        levels_(attention.levels),
        leaf_first_(attention.leaf_first),
        serial_(serial),
        compute_(size(stage.compute)),
        exchange_(size(stage.exchange)),
        done_(levels_.size(), 0) {}

  void add(const std::vector<Issue>& order, Activity activity, bool backward) {
    if (!leaf_first_.empty()) {
      stage_.compute.push_back(leaf_first_step(leaf_first_, activity, backward));
      stage_.compute.back().needs = exchange_;
    }
    for (const Issue& issue : serial_ ? serial_order(levels_) : order) {
      const std::size_t level = place_of(levels_, level_of(issue));
      QueueStep step = attention_step(levels_[level], issue.phase, activity, backward);
      std::int32_t& done = done_[level];
      const bool computes = issue.phase == Phase::kCompute;
      auto& queue = computes ? stage_.compute : stage_.exchange;
      const auto& other = computes ? stage_.exchange : stage_.compute;
      const std::int32_t before = computes ? exchange_ : compute_;
      step.needs = serial_ ? size(other) : std::max(before, done);
      queue.push_back(std::move(step));
      done = size(queue);
    }
  }

 private:
  Stage& stage_;
  const std::vector<LevelTimes>& levels_;
  const std::vector<NodeTimes>& leaf_first_;
  bool serial_;
  std::int32_t compute_;            // steps before this part
  std::int32_t exchange_;           // steps before this part
  std::vector<std::int32_t> done_;  // by level: its latest phase is this step of its queue
};

// A step of every rank that waits for all exchanges before it.
void add_join(Stage& stage, Activity activity, std::vector<std::int64_t> ranks, bool backward) {
  stage.compute.push_back({.activity = activity,
                           .needs = size(stage.exchange),
                           .nanoseconds = std::move(ranks),
                           .backward = backward});
}

std::vector<std::int64_t> nothing(std::int32_t world) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(world), 0);
}

// Without expert parallelism one step of every rank. With it two: what stands before the expert
// exchange, then the experts, where a group's ranks meet; the other way round in backward.
void add_dense(Stage& stage, const RoundTimes& times, bool backward) {
  std::vector<std::int64_t> ranks;
  for (const Passes& dense : times.dense) {
    ranks.push_back(pass_of(dense, backward));
  }
  if (!backward || times.experts.empty()) {
    add_join(stage, Activity::kDense, ranks, backward);
  }
  if (!times.experts.empty()) {
    std::vector<std::int64_t> groups;
    for (const Passes& experts : times.experts) {
      groups.push_back(pass_of(experts, backward));
    }
    add_join(stage, Activity::kDense, std::move(groups), backward);
    stage.compute.back().degree = times.ep;
    stage.compute.back().joint = true;
  }
  if (backward && !times.experts.empty()) {
    add_join(stage, Activity::kDense, std::move(ranks), backward);
  }
}

// Backward of saved placements: what is not kept in head layout travels with the prologue.
Attention with_operands(const CostModel& model, const Round& round, std::int32_t world) {
  return attention_of(model, round, world, [](const Placement& placement, SequenceCost& cost) {
    if (const Mark mark = mark_of(placement); mark == Mark::kSave || mark == Mark::kOffload) {
      cost.prologue.backward += cost.prologue.forward + cost.epilogue.forward;
    } else if (mark == Mark::kSaveQkv) {
      cost.prologue.backward += cost.epilogue.forward;
    }
    return true;
  });
}

Attention recomputed(const CostModel& model, const Round& round, std::int32_t world, bool full) {
  return attention_of(model, round, world, [full](const Placement& placement, SequenceCost&) {
    return full || mark_of(placement) == Mark::kRecompute;
  });
}

Stage make_backward(const CostModel& model,
                    const Round& round,
                    std::int32_t world,
                    const StageOptions& options,
                    const RoundTimes& times) {
  Stage stage{.gathers = true, .scatters = true};
  add_join(stage, Activity::kBegin, nothing(world), true);
  const bool full = options.checkpointing == Checkpointing::kFull;
  const bool marks = options.checkpointing == Checkpointing::kMarks;
  if (full || marks) {
    AttentionPart(stage, recomputed(model, round, world, full), !options.overlap)
        .add(round.schedule.order, Activity::kRecompute, false);
    add_dense(stage, times, false);
  }
  add_dense(stage, times, true);
  const Attention attention = marks ? with_operands(model, round, world) : whole(times);
  AttentionPart(stage, attention, !options.overlap)
      .add(round.schedule.order, Activity::kAttentionBackward, true);
  add_join(stage, Activity::kBegin, nothing(world), true);
  return stage;
}

}  // namespace

RoundStages make_stages(const CostModel& model,
                        const Round& round,
                        std::int32_t world,
                        const StageOptions& options) {
  const RoundTimes times = round_times(model, round, world);
  RoundStages stages;
  stages.forward.gathers = true;
  add_join(stages.forward, Activity::kBegin, nothing(world), false);
  AttentionPart(stages.forward, whole(times), !options.overlap)
      .add(round.schedule.order, Activity::kAttentionForward, false);
  add_dense(stages.forward, times, false);
  std::vector<std::int64_t> head;
  for (const std::int64_t tokens : times.tokens) {
    head.push_back(model.lm_head(tokens));
  }
  add_join(stages.head, Activity::kHead, std::move(head), false);
  stages.backward = make_backward(model, round, world, options, times);
  return stages;
}

Stage optimizer_stage(const CostModel& model, std::int32_t world) {
  Stage stage{.last = true};
  add_join(stage,
           Activity::kOptimizer,
           std::vector<std::int64_t>(static_cast<std::size_t>(world), model.optimizer(world)),
           false);
  return stage;
}

}  // namespace nsp
