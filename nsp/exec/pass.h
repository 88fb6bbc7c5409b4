// One forward or backward pass of one layer's attention over one round, without autograd.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "nsp/exec/program.h"

namespace nsp {

class StashedCall;  // nsp/exec/stash.h

struct Pass {
  std::shared_ptr<Program> program;
  std::int64_t round = 0;
  double scale = 1;
  std::int64_t window = 0;  // tokens a token attends to, itself included; 0: all before it
  // What the forward pass saved, in the recomputed one and in its backward.
  std::shared_ptr<const StashedCall> stashed{};
};

// Whether backward reads the layer's own q, k, v and out.
bool reads_rows(const ProgramRound& round);

// Throws BadInput unless q (T, heads, head_dim) and k, v (T, kv_heads, head_dim) fit the rank's row
// in the round and agree in type and device, and the window is not negative.
void check_inputs(const Pass& pass, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// Returns the output, like q, and in `kept` the tensors that backward needs (q, k, v, out; then
// those of each block's Saved). Every one is defined and their number is equal on all ranks:
// non-reentrant checkpointing stops a recomputed forward at the last saved tensor it needs, so
// ranks that saved different numbers could stop at different exchanges.
at::Tensor run_forward(const Pass& pass,
                       const at::Tensor& q,
                       const at::Tensor& k,
                       const at::Tensor& v,
                       std::vector<at::Tensor>& kept);

// Returns dq, dk, dv.
std::vector<at::Tensor> run_backward(const Pass& pass,
                                     const std::vector<at::Tensor>& kept,
                                     const at::Tensor& dout);

}  // namespace nsp
