#include "nsp/exec/stash.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "nsp/base/error.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;

struct Scope {
  std::shared_ptr<Stash> stash;
  StashUse use = StashUse::kRecord;
  std::size_t next = 0;  // call to replay
};

std::vector<Scope>& scopes() {
  thread_local std::vector<Scope> stack;
  return stack;
}

bool saves(const Pass& pass) {
  return pass.program->round(pass.round).recomputed != nullptr;
}

bool same_call(const Pass& a, const Pass& b) {
  return a.program == b.program && a.round == b.round && a.scale == b.scale && a.window == b.window;
}

// Rows [0, count) along `dim` in memory of their own, so that what is not saved can go.
Tensor kept(const Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t count) {
  return count == 0 ? at::empty({0}, x.options()) : part(x, dim, begin, count).clone();
}

// Views of out: what each block of the recomputed round offloads.
std::vector<Tensor> offloaded_rows(const ProgramRound& round, const Tensor& out) {
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < round.blocks.size(); ++i) {
    const Parts& parts = round.parts[i];
    if (parts.offloaded_rows > 0) {
      const std::int64_t begin = round.blocks[i]->block().begin + parts.stashed_rows();
      rows.push_back(part(out, 0, begin, parts.offloaded_rows));
    }
  }
  return rows;
}

}  // namespace

StashedCall::StashedCall(Pass pass,
                         std::vector<StashedBlock> blocks,
                         std::shared_ptr<OffloadedRows> offloaded)
    : pass_(std::move(pass)), blocks_(std::move(blocks)), offloaded_(std::move(offloaded)) {
  for (const StashedBlock& block : blocks_) {
    for (const Tensor& tensor : {block.out, block.lse, block.qkv}) {
      bytes_ += static_cast<std::int64_t>(tensor.nbytes());
    }
  }
  pass_.program->world().stash.add(bytes_);
  pass_.program->world().offloaded.add(offloaded_ ? offloaded_->bytes() : 0);
}

StashedCall::~StashedCall() {
  pass_.program->world().stash.add(-bytes_);
  pass_.program->world().offloaded.add(offloaded_ ? -offloaded_->bytes() : 0);
}

void Stash::clear() {
  const std::scoped_lock lock(mutex_);
  calls_.clear();
}

void Stash::add(std::shared_ptr<const StashedCall> call) {
  const std::scoped_lock lock(mutex_);
  calls_.push_back(std::move(call));
}

std::shared_ptr<const StashedCall> Stash::at(std::size_t index) const {
  const std::scoped_lock lock(mutex_);
  return index < calls_.size() ? calls_[index] : nullptr;
}

std::int64_t Stash::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& call : calls_) {
    sum += call->bytes();
  }
  return sum;
}

void enter_stash(std::shared_ptr<Stash> stash, StashUse use) {
  if (use == StashUse::kRecord) {
    stash->clear();
  }
  scopes().push_back({.stash = std::move(stash), .use = use});
}

void leave_stash() {
  if (scopes().empty()) {
    throw Error("a stash is left on a thread that entered none");
  }
  scopes().pop_back();
}

bool records(const Pass& pass) {
  return !scopes().empty() && scopes().back().use == StashUse::kRecord && saves(pass);
}

void put_stashed(const StashedBlock& block, const Tensor& out) {
  if (block.out.size(0) > 0) {
    part(out, 0, 0, block.out.size(0)).copy_(block.out);
  }
}

void put_offloaded(const StashedCall& call, const Tensor& out) {
  if (call.offloaded()) {
    const Pass& pass = call.pass();
    call.offloaded()->restore(offloaded_rows(*pass.program->round(pass.round).recomputed, out));
  }
}

void stash_call(const Pass& pass, const Tensor& out, const std::vector<Saved>& blocks) {
  const ProgramRound& round = *pass.program->round(pass.round).recomputed;
  std::vector<StashedBlock> stashed;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Parts& parts = round.parts[i];
    const std::int64_t qkv = node_rows(parts.save_qkv);
    stashed.push_back({.out = kept(out, 0, round.blocks[i]->block().begin, parts.stashed_rows()),
                       .lse = kept(blocks[i].lse, 0, 0, qkv + node_rows(parts.save)),
                       .qkv = kept(blocks[i].qkv, 0, 0, qkv)});
  }
  const std::vector<Tensor> rows = offloaded_rows(round, out);
  scopes().back().stash->add(std::make_shared<const StashedCall>(
      pass, std::move(stashed), rows.empty() ? nullptr : pass.program->world().offload.send(rows)));
}

std::shared_ptr<const StashedCall> take_stashed(const Pass& pass) {
  if (scopes().empty() || scopes().back().use != StashUse::kReplay || !saves(pass)) {
    return nullptr;
  }
  Scope& scope = scopes().back();
  std::shared_ptr<const StashedCall> call = scope.stash->at(scope.next++);
  if (!call || !same_call(call->pass(), pass)) {
    throw Error(
        "nsp::attention: the recomputed forward pass calls it otherwise than the first one did; "
        "a checkpointed layer must run the same calls in the same order again");
  }
  return call;
}

}  // namespace nsp
