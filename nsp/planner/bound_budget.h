// The part of the lower bound that knows the token budget: long sequences keep some ranks busy, and
// the others may not hold enough tokens to take the rest meanwhile.
//
// Words: B the token budget, room(r) the seconds of round r beside dense_fixed, a the least area of
// a sequence (seconds x ranks, dense included) and L its tokens, H any set of sequences.
//
// Every rank of every round is paid for its capacity, either in time (its room) or in tokens (v
// seconds for a full budget B): all ranks with a sequence of H in time, the others in whichever is
// less, v or the room. A sequence outside H takes from the former time, from the latter tokens, so
// in sum it costs at least min(a, v L / B), wherever its ranks are (a little less than a where its
// node straddles both kinds: `straddled`). A sequence of H costs its area. So in a plan
//
//   sum over H of a + sum over the others of min(a, v L / B)
//       <= sum over rounds of  |A| room + (world - |A|) min(room, v)                            (*)
//
// with A the ranks of H in that round. The right side grows with |A|, which is at most the sum of
// the degrees of H: nodes of H that share ranks only make it smaller.
//
// One round: room = R. With v <= R, (*) is a sum over the sequences: one outside H adds min(a, v L
// / B), one in H adds a - degree (R - v), at the degree where that is least; the sum is at most
// world v. H is free, so each sequence counts with the larger of the two.
// Several rounds: their rooms add up to R. A round lasts at least as long as its longest sequence
// of H alone, m; so the right side of (*) is at most world R - sum of (world - |A|) max(0, m - v).
// H is taken as the few longest, over all ways to deal them to rounds and degrees.
#pragma once

#include "nsp/planner/bound_area.h"

namespace nsp {

struct BoundWorld {
  std::int32_t world = 1;
  std::int64_t token_budget = 0;  // > 0
};

// Whether some v proves that no plan of one round, or of two or more, has this room (all rounds
// together, without their dense_fixed).
bool refuted_in_one(const BatchArea& batch, const BoundWorld& world, std::int64_t room);
bool refuted_in_several(const BatchArea& batch, const BoundWorld& world, std::int64_t room);

}  // namespace nsp
