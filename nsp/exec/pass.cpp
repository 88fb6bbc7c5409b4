// Kept for backward, in this order: q, k, v, out (empty unless a block reads the layer's own rows),
// then qkv, out, lse of each block.
#include "nsp/exec/pass.h"

#include <algorithm>
#include <type_traits>

#include <ATen/ops/empty.h>

#include "nsp/exec/buffer_bytes.h"
#include "nsp/exec/range.h"
#include "nsp/exec/stash.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensor rows(const Tensor& x, const Block& block) {
  return part(x, 0, block.begin, block.tokens);
}

template <class State>
class Walk {
 public:
  Walk(const Pass& pass, const ProgramRound& round, std::vector<State>& states)
      : round_(round),
        states_(states),
        at_(pass.program->world().communicator->progress, pass.round, !kForward) {}

  // In the issue order; what comes back at the end of each block is waited for last, so it travels
  // behind the compute of the others.
  void stream() {
    for (const Step& step : round_.steps) {
      issue(step);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      finish(i);
    }
  }

  // A block after the other, nothing beside anything: the same launches.
  void serial() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      for (const Step& step : round_.steps) {
        if (step.block == i) {
          issue(step);
        }
      }
      finish(i);
    }
  }

 private:
  static constexpr bool kForward = std::is_same_v<State, ForwardState>;

  void issue(const Step& step) {
    const LevelBackend& backend = *round_.blocks[step.block];
    State& state = states_[step.block];
    at_.enter(stage_of(step.phase), backend.block().degree);
    const Range range(kForward ? step.forward_range : step.backward_range);
    switch (step.phase) {
      case Phase::kPrologue:
        backend.prologue(state);
        break;
      case Phase::kCompute:
        backend.compute(state);
        break;
      case Phase::kEpilogue:
        backend.epilogue(state);
        break;
    }
  }

  void finish(std::size_t block) {
    const Range range(kForward ? "nsp finish fwd" : "nsp finish bwd");
    at_.enter(Stage::kFinish, round_.blocks[block]->block().degree);
    round_.blocks[block]->finish(states_[block]);
  }

  const ProgramRound& round_;
  std::vector<State>& states_;
  Progress::Pass at_;
};

template <class State>
void run(const Pass& pass, const ProgramRound& round, std::vector<State>& states) {
  Walk<State> walk(pass, round, states);
  if (pass.program->world().streaming) {
    walk.stream();
  } else {
    walk.serial();
  }
}

const ProgramRound& round_of(const Pass& pass) {
  const ProgramRound& round = pass.program->round(pass.round);
  return pass.stashed ? *round.recomputed : round;
}

const StashedBlock* stashed_of(const Pass& pass, std::size_t block) {
  return pass.stashed ? &pass.stashed->blocks()[block] : nullptr;
}

// All ranks come here with the same round, so that all grow their arenas together.
void reserve_arena(const Pass& pass, const ProgramRound& round, const Tensor& rows) {
  if (const auto& peers = pass.program->world().communicator->peers) {
    const ValueShape value{rows.size(2), static_cast<std::int64_t>(rows.element_size())};
    peers->reserve(arena_bytes(round, pass.program->heads(), value));
  }
}

}  // namespace

bool reads_rows(const ProgramRound& round) {
  return std::ranges::any_of(round.blocks, [](const auto& block) { return block->keeps_rows(); });
}

Tensor run_forward(
    const Pass& pass, const Tensor& q, const Tensor& k, const Tensor& v, Tensors& kept) {
  const ProgramRound& round = round_of(pass);
  ++pass.program->attention_calls;
  ++pass.program->world().attention_calls;
  reserve_arena(pass, round, q);
  Tensor out = at::empty(q.sizes(), q.options());
  std::vector<ForwardState> states;
  states.reserve(round.blocks.size());
  for (std::size_t i = 0; i < round.blocks.size(); ++i) {
    const Block& block = round.blocks[i]->block();
    states.push_back({.q = rows(q, block),
                      .k = rows(k, block),
                      .v = rows(v, block),
                      .out = rows(out, block),
                      .scale = pass.scale,
                      .window = window_within(block, pass.window),
                      .stashed = stashed_of(pass, i)});
  }
  run(pass, round, states);
  if (pass.stashed) {
    put_offloaded(*pass.stashed, out);
  }
  if (reads_rows(round)) {
    kept = {q, k, v, out};
  } else {
    kept.assign(4, at::empty({0}, q.options()));
  }
  for (const ForwardState& state : states) {
    kept.insert(kept.end(), {state.saved.qkv, state.saved.out, state.saved.lse});
  }
  return out;
}

Tensors run_backward(const Pass& pass, const Tensors& kept, const Tensor& dout) {
  const ProgramRound& round = round_of(pass);
  const std::int64_t kv_heads = pass.program->heads().kv;
  reserve_arena(pass, round, dout);
  const auto gradient = [&](std::int64_t heads) {
    return at::empty({dout.size(0), heads, dout.size(2)}, dout.options());
  };
  Tensors gradients = {gradient(dout.size(1)), gradient(kv_heads), gradient(kv_heads)};
  std::vector<BackwardState> states;
  states.reserve(round.blocks.size());
  for (std::size_t i = 0; i < round.blocks.size(); ++i) {
    const LevelBackend& backend = *round.blocks[i];
    const Block& block = backend.block();
    BackwardState& state = states.emplace_back();
    state.dout = rows(dout, block);
    state.dq = rows(gradients[0], block);
    state.dk = rows(gradients[1], block);
    state.dv = rows(gradients[2], block);
    if (backend.keeps_rows()) {
      state.q = rows(kept[0], block);
      state.k = rows(kept[1], block);
      state.v = rows(kept[2], block);
      state.out = rows(kept[3], block);
    }
    state.scale = pass.scale;
    state.window = window_within(block, pass.window);
    state.stashed = stashed_of(pass, i);
    state.saved = {.qkv = kept[4 + 3 * i], .out = kept[5 + 3 * i], .lse = kept[6 + 3 * i]};
  }
  run(pass, round, states);
  return gradients;
}

}  // namespace nsp
