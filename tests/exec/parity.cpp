#include "parity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "host_peers.h"
#include "nsp/base/hash.h"
#include "nsp/comm/c10d.h"
#include "nsp/exec/attention.h"
#include "nsp/exec/buffer_bytes.h"
#include "nsp/exec/program.h"
#include "nsp/exec/stash.h"
#include "nsp/plan/layout.h"
#include "nsp/plan/plan_json.h"
#include "thread_ranks.h"

namespace nsp::test {
namespace {

using at::Tensor;
using Lengths = std::vector<std::int64_t>;

// All sequences one after another, by index: (T, heads, head_dim).
struct Batch {
  Tensor q, k, v, dout;
  Tensor out, dq, dk, dv;
  double scale = 1;
};

Batch random_batch(std::int64_t tokens, const RunOptions& options) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  const auto draw = [&](std::int64_t heads) {
    return at::randn({tokens, heads, options.head_dim}, generator, at::kDouble);
  };
  Batch batch;
  batch.q = draw(options.heads.query);
  batch.k = draw(options.heads.kv);
  batch.v = draw(options.heads.kv);
  batch.dout = draw(options.heads.query);
  batch.scale = 1 / std::sqrt(static_cast<double>(options.head_dim));
  return batch;
}

// Softmax attention and its derivative, written out: P = softmax(q k^T), dS = P (dP - rowsum(dP
// P)).
void attend_head(
    Batch& b, std::int64_t begin, std::int64_t length, std::int64_t head, std::int64_t window) {
  const std::int64_t kv_head = head / (b.q.size(1) / b.k.size(1));
  const auto rows = [&](const Tensor& x, std::int64_t h) {
    return x.narrow(0, begin, length).select(1, h);
  };
  const Tensor q = rows(b.q, head), k = rows(b.k, kv_head), v = rows(b.v, kv_head);
  const Tensor dout = rows(b.dout, head);
  Tensor seen = at::ones({length, length}, at::kBool).tril();
  seen = window > 0 ? seen.triu(1 - window) : seen;
  const Tensor scores = at::matmul(q, k.t()).mul_(b.scale);
  const Tensor p =
      scores.masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
  rows(b.out, head).copy_(at::matmul(p, v));
  rows(b.dv, kv_head).add_(at::matmul(p.t(), dout));
  const Tensor dp = at::matmul(dout, v.t());
  const Tensor ds = (dp - (dp * p).sum(-1, true)).mul_(p).mul_(b.scale);
  rows(b.dq, head).copy_(at::matmul(ds, k));
  rows(b.dk, kv_head).add_(at::matmul(ds.t(), q));
}

void solve(Batch& batch, const Lengths& lengths, std::int64_t window) {
  batch.out = at::empty_like(batch.q);
  batch.dq = at::empty_like(batch.q);
  batch.dk = at::zeros_like(batch.k);
  batch.dv = at::zeros_like(batch.v);
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t head = 0; head < batch.q.size(1); ++head) {
      attend_head(batch, begin, length, head, window);
    }
    begin += length;
  }
}

Lengths lengths_of(const Round& round) {
  Lengths lengths;
  for (const Placement& placement : round.placements) {
    lengths.push_back(placement.tokens);
  }
  return lengths;
}

// A rank's rows of a batch tensor; a dummy token is a row of ones.
Tensor take(const Tensor& x, const std::vector<Segment>& row, const Lengths& starts) {
  std::vector<Tensor> parts;
  for (const Segment& s : row) {
    if (s.dummy()) {
      parts.push_back(at::ones({1, x.size(1), x.size(2)}, x.options()));
    } else {
      const auto start = starts[static_cast<std::size_t>(s.sequence)];
      parts.push_back(x.narrow(0, start + s.begin, s.tokens()));
    }
  }
  return at::cat(parts);
}

at::ScalarType scalar_type(Type type) {
  return type == Type::kFloat64 ? at::kDouble : type == Type::kFloat32 ? at::kFloat : at::kBFloat16;
}

Tensor as_input(const Tensor& x, const RunOptions& options) {
  const Tensor typed = x.to(scalar_type(options.type));
  return options.strided ? typed.transpose(0, 1).contiguous().transpose(0, 1) : typed.clone();
}

double difference(const Tensor& got, const Tensor& wanted, const std::vector<Segment>& row) {
  if (row.front().dummy()) {  // attends to itself: ones in, ones out, and no batch row to compare
    return 0;
  }
  return (got.detach().to(at::kDouble) - wanted).abs().max().item<double>();
}

std::string bytes_of(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    const Tensor rows = tensor.detach().contiguous();
    bytes.append(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
  }
  return bytes;
}

struct RankRun {
  std::vector<Segment> row;
  Lengths starts;
  std::string plan_json;
  std::shared_ptr<HostArenas> arenas;
};

Difference run_rank(const Batch& batch,
                    const RankRun& run,
                    const RunOptions& options,
                    const std::string& group) {
  auto world = std::make_shared<World>();
  world->communicator = make_c10d_communicator(group);
  world->attention = make_cpu_attention();
  world->streaming = options.streaming;
  if (options.reach > 1) {
    world->communicator->peers =
        make_host_peers(run.arenas,
                        *world->communicator,
                        {.reach = options.reach, .fetch_nanoseconds = options.fetch_nanoseconds});
  }
  const auto handle = add_program(std::make_shared<Program>(world, run.plan_json, options.heads));
  const auto input = [&](const Tensor& x) {
    return as_input(take(x, run.row, run.starts), options);
  };
  const Tensor q = input(batch.q).requires_grad_();
  const Tensor k = input(batch.k).requires_grad_();
  const Tensor v = input(batch.v).requires_grad_();
  const auto attend = [&] { return attention(q, k, v, handle, 0, batch.scale, options.window); };
  Difference result;
  const auto stash = std::make_shared<Stash>();
  if (options.checkpointed) {
    enter_stash(stash, StashUse::kRecord);
    attend();
    leave_stash();
    const auto program = find_program(handle);
    const ValueShape value{options.head_dim, q.element_size()};
    result.stash_bytes = {world->stash.held, world->offloaded.held};
    result.stash_formula = {stash_bytes(program->round(0), options.heads, value),
                            offload_bytes(program->round(0), options.heads, value)};
    enter_stash(stash, StashUse::kReplay);
    world->reset_counters();
  }
  const Tensor out = attend();
  if (options.checkpointed) {
    leave_stash();
  }
  release_program(handle);  // backward holds the program
  result.exchanges_forward = {world->communicator->exchanges};
  result.launches_forward = {world->attention->forward_launches};
  torch::autograd::backward({out}, {input(batch.dout)});
  result.exchanges_backward = {world->communicator->exchanges - result.exchanges_forward[0]};
  result.bytes = {world->communicator->bytes};
  result.launches_backward = {world->attention->backward_launches};
  if (const auto& peers = world->communicator->peers) {
    result.arena_bytes = peers->capacity();
  }
  const auto compare = [&](const Tensor& got, const Tensor& wanted) {
    return difference(got, take(wanted, run.row, run.starts), run.row);
  };
  result.out = compare(out, batch.out);
  result.dq = compare(q.grad(), batch.dq);
  result.dk = compare(k.grad(), batch.dk);
  result.dv = compare(v.grad(), batch.dv);
  result.bits = hash_hex(bytes_of({out, q.grad(), k.grad(), v.grad()}));
  return result;
}

void merge(Difference& all, const Difference& rank) {
  all.out = std::max(all.out, rank.out);
  all.dq = std::max(all.dq, rank.dq);
  all.dk = std::max(all.dk, rank.dk);
  all.dv = std::max(all.dv, rank.dv);
  all.exchanges_forward.push_back(rank.exchanges_forward[0]);
  all.exchanges_backward.push_back(rank.exchanges_backward[0]);
  all.bytes.push_back(rank.bytes[0]);
  all.launches_forward.push_back(rank.launches_forward[0]);
  all.launches_backward.push_back(rank.launches_backward[0]);
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(all.stash_bytes, rank.stash_bytes);
  append(all.stash_formula, rank.stash_formula);
  all.arena_bytes = rank.arena_bytes;
  all.bits += rank.bits;
}

}  // namespace

double Difference::worst() const {
  return std::max({out, dq, dk, dv});
}

Difference run_plan(const Plan& plan, const RunOptions& options, const Reference& reference) {
  at::set_num_threads(1);  // small matrices; the ranks are the threads
  const Round& round = plan.rounds.front();
  const Lengths lengths = lengths_of(round);
  Lengths starts(lengths.size(), 0);
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), std::int64_t{0});
  Batch batch = random_batch(plan.num_tokens, options);
  solve(batch,
        reference.lengths.empty() ? lengths : reference.lengths,
        reference.window.value_or(options.window));
  const std::string text = to_json(plan).dump();
  const auto arenas = make_host_arenas(plan.world);
  std::vector<Difference> ranks(static_cast<std::size_t>(plan.world));
  run_ranks(plan.world, [&](int rank, const std::string& group) {
    const RankRun run{rank_row(round, rank), starts, text, arenas};
    ranks[static_cast<std::size_t>(rank)] = run_rank(batch, run, options, group);
  });
  Difference all;
  for (const Difference& rank : ranks) {
    merge(all, rank);
  }
  return all;
}

}  // namespace nsp::test
