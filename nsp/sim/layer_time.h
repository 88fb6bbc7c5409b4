// One layer of one round on two queues, or several in a row, without FSDP traffic: fast enough to
// score candidates in a search.
//
// Attention first, then the dense part, each pass from a common start (between two attentions there
// is one dense part, wherever a layer is cut). The issue order is walked once: what a phase needs
// was issued before it, so every time is a maximum and a sum of earlier ones.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/sim/round_times.h"

namespace nsp {

struct LayerTime {
  std::int64_t forward = 0;   // nanoseconds until the last rank is done
  std::int64_t backward = 0;  // nanoseconds, from a common start

  std::int64_t sum() const { return forward + backward; }
  bool operator==(const LayerTime&) const = default;
};

// `order` is sound for the round (find_order_fault). Communication and compute of a rank overlap;
// an exchange starts when the last rank of its node arrives.
LayerTime simulate_layer(const RoundTimes& times, const std::vector<Issue>& order);

// `layers` in a row without a barrier between them: what makes ranks wait once may be made good in
// the next layer. FSDP is there as far as it holds ranks together: none begins a layer before all
// have begun the one before it.
LayerTime simulate_layers(const RoundTimes& times,
                          const std::vector<Issue>& order,
                          std::int32_t layers);

// One layer without overlap: leaves that run first, then levels root to leaf, each phase after the
// one before it. Where no leaves run first and no level is cut (launches and exchanges of their
// own) it is the cost model's load, found the simulator's way.
LayerTime simulate_serial_layer(const RoundTimes& times);

}  // namespace nsp
