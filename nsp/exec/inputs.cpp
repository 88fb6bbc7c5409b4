#include <fmt/format.h>
#include <string>
#include <string_view>

#include "nsp/base/error.h"
#include "nsp/exec/pass.h"

namespace nsp {
namespace {

using at::Tensor;

std::string shape_of(const Tensor& x) {
  return fmt::format("({})", fmt::join(x.sizes().vec(), ", "));
}

void check_shape(std::string_view field,
                 const Tensor& x,
                 const Tensor& q,
                 std::int64_t heads,
                 std::int64_t tokens) {
  const bool fits = x.dim() == 3 && x.size(0) == tokens && x.size(1) == heads && x.size(2) > 0;
  if (!fits) {
    bad_input(field,
              "of shape " + shape_of(x),
              fmt::format("this rank's row holds {} tokens in this round: pass "
                          "({}, {} heads, head_dim)",
                          tokens,
                          tokens,
                          heads));
  }
  if (x.size(2) != q.size(2)) {
    bad_input(field,
              fmt::format("with head_dim {}", x.size(2)),
              fmt::format("q has head_dim {}; they must be equal", q.size(2)));
  }
  if (x.scalar_type() != q.scalar_type() || x.device() != q.device()) {
    bad_input(field,
              fmt::format("of {} on {}", at::toString(x.scalar_type()), x.device().str()),
              fmt::format("q is {} on {}; q, k and v must agree",
                          at::toString(q.scalar_type()),
                          q.device().str()));
  }
}

}  // namespace

void check_inputs(const Pass& pass, const Tensor& q, const Tensor& k, const Tensor& v) {
  const Heads& heads = pass.program->heads();
  const ProgramRound& round = pass.program->round(pass.round);
  if (!q.is_floating_point()) {
    bad_input("q", std::string("of ") + at::toString(q.scalar_type()), "must be floating point");
  }
  if (pass.window < 0) {
    bad_input("window", pass.window, "must be at least 1 token, or 0 for whole sequences");
  }
  if (pass.window > 0 && pass.window < round.longest_zigzag) {
    bad_input("window",
              pass.window,
              fmt::format("a sequence of {} tokens runs on gather, ring or usp, which have no "
                          "windows; plan with backend ulysses",
                          round.longest_zigzag));
  }
  check_shape("q", q, q, heads.query, round.tokens);
  check_shape("k", k, q, heads.kv, round.tokens);
  check_shape("v", v, q, heads.kv, round.tokens);
}

}  // namespace nsp
