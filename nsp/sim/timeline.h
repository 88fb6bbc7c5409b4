// What a simulation gives: how long the step takes, where each rank's time goes, and, when asked,
// every span of every queue. Integer nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/plan/plan.h"

namespace nsp {

enum class Queue : std::uint8_t { kCompute, kExchange, kFsdp };

enum class Activity : std::uint8_t {
  kBegin,  // of a layer, takes no time: waits for the layer's parameters
  kAttentionForward,
  kAttentionBackward,
  kRecompute,  // attention again, in backward
  kDense,      // all that is not attention, recomputation of it included
  kHead,
  kOptimizer,
  kExchange,  // sequence-parallel traffic
  kGather,    // a layer's parameters
  kScatter    // a layer's gradients
};

struct Span {
  std::int32_t rank = 0;
  Queue queue = Queue::kCompute;
  Activity activity = Activity::kBegin;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t round = 0;
  std::int32_t layer = -1;  // -1: outside the layers
  std::int32_t degree = 0;  // attention and exchanges: the level; otherwise 0
  Phase phase = Phase::kCompute;
  bool backward = false;
  Backend backend = Backend::kLocal;  // attention and exchanges

  bool operator==(const Span&) const = default;
};

// One rank's step; the parts add up to it.
struct Breakdown {
  std::int64_t attention_forward = 0;
  std::int64_t attention_backward = 0;
  std::int64_t recompute = 0;
  std::int64_t dense = 0;
  std::int64_t head = 0;
  std::int64_t optimizer = 0;
  std::int64_t exposed_exchange = 0;  // compute stands still while the rank's own exchange runs
  std::int64_t exposed_fsdp = 0;      // and while a gather or scatter that it needs runs
  std::int64_t waiting = 0;           // and while others are not there yet

  std::int64_t sum() const;
  void add(const Breakdown& other, std::int64_t times = 1);
  bool operator==(const Breakdown&) const = default;
};

struct Timeline {
  std::int64_t step = 0;  // nanoseconds of the whole optimizer step
  std::vector<Breakdown> ranks{};
  std::int32_t slowest = 0;       // the rank that waits least
  std::int64_t memory_bytes = 0;  // most that a rank holds beside model state (memory.h)
  std::int32_t memory_rank = 0;
  std::vector<Span> spans{};  // by begin, rank, queue; only when asked for

  Breakdown mean() const;  // over the ranks, each part rounded down
  bool operator==(const Timeline&) const = default;
};

}  // namespace nsp
