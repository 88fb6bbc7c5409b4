// The two ways of an ulysses node: rows of all heads become whole sequences of some heads, and
// back. Letters as in rank_heads.h; T rows of the node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "nsp/comm/communicator.h"
#include "nsp/exec/block.h"
#include "nsp/exec/heads.h"

namespace nsp {

// Immutable, as backends are. Communicators outlive it.
class HeadExchange {
 public:
  virtual ~HeadExchange() = default;

  // `parts`: views (ranks, t, heads, D) of this rank's rows. Gives (T, all their heads, D) by
  // sequence.
  virtual std::unique_ptr<Pending> to_sequences(std::span<const at::Tensor> parts,
                                                std::string_view phase) const = 0;

  // `x` (T, heads, D) by sequence, contiguous. Its first heads go to `targets`, views (ranks, t,
  // heads, D) of this rank's rows, which are written when the Pending is waited for; it gives the
  // heads behind them as (k * t, heads, D), the rows of each rank in turn; nothing (undefined) when
  // there are none.
  virtual std::unique_ptr<Pending> to_rows(const at::Tensor& x,
                                           std::span<const at::Tensor> targets,
                                           std::string_view phase) const = 0;
};

// By one all-to-all.
std::unique_ptr<HeadExchange> make_collective_exchange(const Block& block,
                                                       const HeadSplit& heads,
                                                       Communicator& communicator);

// By peer copies: rows are pulled to their place. What stays on the rank is copied on the current
// stream and never staged.
std::unique_ptr<HeadExchange> make_peer_exchange(const Block& block,
                                                 const HeadSplit& heads,
                                                 PeerCopies& peers);

// Whether a rank pulls every run of rows (a sequence, a source) to its place, instead of one block
// a source that a kernel puts in order afterwards. Equal whatever the other ranks do.
bool pulls_runs(const Block& block, std::int64_t row_bytes);

// Runs of this rank's rows that are copied to their place as a block each; more go through a
// buffer of these rows.
constexpr std::int64_t kMostOwnRuns = 8;

}  // namespace nsp
