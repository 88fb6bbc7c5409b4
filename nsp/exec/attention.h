// The attention of one decoder layer over one round of a plan: all levels of the tree, one autograd
// node.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace nsp {

// The dispatcher operator nsp::attention, for CPU and CUDA tensors.
//
// q (T, heads, head_dim); k, v (T, kv_heads, head_dim); the result is like q. T is the rank's rows
// in the round; `handle` is one of add_program; `scale` multiplies q k^T; `window` is how many
// tokens of its sequence a token attends to, itself included (0: all before it).
//
// Every rank of the world calls it for the same plan and round, and runs backward equally often:
// each call issues the same exchanges on all ranks, those of exchanges_of (nsp/plan/exchanges.h)
// for each (level, backend, wave) that any rank uses, whatever the rank's own rows. Throws BadInput
// before any exchange when shapes, types or devices do not fit, Error when an exchange fails.
// Backward returns dq, dk and dv always and refuses create_graph=True (no second derivative).
//
// Compilers trace it: nsp/exec/attention_calls.h.
at::Tensor attention(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     std::int64_t handle,
                     std::int64_t round,
                     double scale,
                     std::int64_t window);

// The operator's name. A program that reaches the operator only through the dispatcher calls this,
// so that the linker takes the registration from the static library.
std::string_view attention_op();

}  // namespace nsp
