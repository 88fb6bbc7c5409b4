// The operator nsp::attention without autograd: what its dispatcher entries run, one pass at a
// time.
//
// A forward pass that will be differentiated gives back two tensors, out and `kept`. Kept is what
// backward needs beside q, k, v and out: an empty tensor on their device whose storage owns it (and
// the program, which so outlives its released handle). An autograd graph, a compiler and
// checkpointing keep and drop it like any other saved tensor; a copy of it holds nothing. Backward
// wants q, k, v and out again, so that whoever saved them knows that they are still read.
#pragma once

#include <cstdint>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

namespace nsp {

// The operator's arguments: nsp/exec/attention.h.
at::Tensor call_plain(const at::Tensor& q,
                      const at::Tensor& k,
                      const at::Tensor& v,
                      std::int64_t handle,
                      std::int64_t round,
                      double scale,
                      std::int64_t window);

// (out, kept)
std::tuple<at::Tensor, at::Tensor> call_forward(const at::Tensor& q,
                                                const at::Tensor& k,
                                                const at::Tensor& v,
                                                std::int64_t handle,
                                                std::int64_t round,
                                                double scale,
                                                std::int64_t window);

// (dq, dk, dv). Throws Error for a kept that no forward pass made. The levels of a rank without
// leaf rows need none of q, k, v and out: needs_rows.
std::tuple<at::Tensor, at::Tensor, at::Tensor> call_backward(const at::Tensor& dout,
                                                             const at::Tensor& q,
                                                             const at::Tensor& k,
                                                             const at::Tensor& v,
                                                             const at::Tensor& out,
                                                             const at::Tensor& kept);
// True for tensors of a compiler's trace, which know nothing of the plan.
bool needs_rows(const at::Tensor& kept);
// False for tensors of a compiler's trace, and for copies.
bool made_by_forward(const at::Tensor& kept);

// The same for a compiler's trace: shapes and types only. Handle, round and window stay symbols
// there, so one graph serves all plans.
at::Tensor trace_plain(const at::Tensor& q,
                       const at::Tensor& k,
                       const at::Tensor& v,
                       c10::SymInt handle,
                       c10::SymInt round,
                       double scale,
                       c10::SymInt window);
std::tuple<at::Tensor, at::Tensor> trace_forward(const at::Tensor& q,
                                                 const at::Tensor& k,
                                                 const at::Tensor& v,
                                                 c10::SymInt handle,
                                                 c10::SymInt round,
                                                 double scale,
                                                 c10::SymInt window);
std::tuple<at::Tensor, at::Tensor, at::Tensor> trace_backward(const at::Tensor& dout,
                                                              const at::Tensor& q,
                                                              const at::Tensor& k,
                                                              const at::Tensor& v,
                                                              const at::Tensor& out,
                                                              const at::Tensor& kept);

}  // namespace nsp
