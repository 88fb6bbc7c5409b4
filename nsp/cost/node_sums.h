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
  Passes streamed = {};  // traffic inside the compute phase that its attention can hide (ring)
};

struct NodeSums {
  Passes prologue;
  Passes work;
  Passes path;  // largest
  Passes epilogue;
  Passes streamed;
  std::int64_t sequences = 0;

  void add(const SequenceCost& cost);
};

// Nanoseconds of each phase, latencies and launches included.
struct PhaseCost {
  Passes prologue;
  Passes compute;
  Passes epilogue;

  Passes sum() const;
};

}  // namespace nsp
