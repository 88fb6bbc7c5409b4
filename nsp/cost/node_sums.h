// What the sequences of one node and way add up to, and the phases that come of it.
#pragma once

#include <cstdint>

#include "nsp/plan/way.h"

namespace nsp {

// Nanoseconds, or another amount, of each pass.
struct Passes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;

  std::int64_t sum() const { return forward + backward; }
  Passes& operator+=(const Passes& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
  bool operator==(const Passes&) const = default;
};

// What one sequence adds to each rank of a node, nanoseconds.
struct SequenceCost {
  Passes prologue;  // bytes over bandwidth; the collective's latency belongs to the node
  Passes compute;   // share of the launch's work
  Passes path;      // critical path if it is the node's longest
  Passes epilogue;
  Passes merge = {};     // compute beside attention: merging outputs, summing gradients
  Passes streamed = {};  // traffic inside the compute phase that its attention can hide (ring)

  // All of it that nothing hides, without compute.
  Passes traffic() const;
};

struct NodeSums {
  Passes prologue;
  Passes work;
  Passes path;  // largest
  Passes epilogue;
  Passes merge;
  Passes streamed;
  std::int64_t sequences = 0;

  void add(const SequenceCost& cost);
};

// What an active node of one way costs beside its sequences.
struct WayFixed {
  Passes prologue;  // nanoseconds: latency of exchanges
  Passes epilogue;
  Passes launches{.forward = 1, .backward = 1};  // of attention, one after the other
  Passes launch;                                 // nanoseconds each, beside the launch law
  Passes hop;                                    // latency of the hops that attention hides

  // All that nothing hides: no node of this way costs less than this, its work and its traffic.
  Passes sum() const;
};

// Nanoseconds of the compute phase: equal launches one after the other, each under the launch law;
// streamed traffic runs beside all but the last.
Passes compute_seconds(const WayFixed& way,
                       const Passes& work,
                       const Passes& path,
                       const Passes& streamed);

// Nanoseconds of each phase, latencies and launches included.
struct PhaseCost {
  Passes prologue;
  Passes compute;
  Passes epilogue;

  Passes sum() const;
};

}  // namespace nsp
