// Follows ring.cpp. Letters: t rows of this rank.
#include "nsp/exec/zigzag_sizes.h"

namespace nsp::sizes {
namespace {

struct Hop {
  Exchange exchange;
  Launch launch;
};

std::vector<Hop> hops_of(const ZigzagPieces& pieces, const Ring& ring, std::int64_t t) {
  std::vector<Hop> hops;
  for (std::int32_t by = 1; by < ring.size; ++by) {
    const std::int32_t to = (ring.index + by) % ring.size;
    const std::int32_t from = (ring.index + ring.size - by) % ring.size;
    std::vector<std::int64_t> sent = sent_rows(pieces, ring.index, to);
    sent.erase(sent.begin() + own_share(std::ssize(sent), ring), sent.end());
    const std::int64_t received = std::ssize(sent_rows(pieces, from, ring.index));
    const ZigzagChunks chunks = ring_chunks(pieces, ring.index, from);
    hops.push_back({{{sent, t}, own_share(received, ring), received},
                    {{chunks.queries, t}, {chunks.keys, received}}});
  }
  return hops;
}

class RingSteps {
 public:
  RingSteps(const ZigzagPieces& pieces, const Ring& ring, const Row& row)
      : ring_(ring),
        row_(row),
        t_(zigzag_tokens(pieces, ring.index)),
        hops_(hops_of(pieces, ring, t_)) {}

  StageList forward() {
    StageList stages;
    begin();
    stages[0] = held_.end_stage();
    held_.take(t_ * row_.lse);
    const std::int64_t sums = row_.cast ? held_.take(t_ * row_.q_s) : 0;
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      receive(i);
      attend_chunks(hops_[i].launch, row_, held_);
      held_.drop(hops_[i].exchange.received * row_.kv);
    }
    held_.drop(sums);
    stages[1] = stages[2] = stages[3] = held_.end_stage();
    stages[2].peak = stages[3].peak = stages[1].after;
    return stages;
  }

  StageList backward() {
    StageList stages;
    begin();
    stages[0] = held_.end_stage();
    own_gradients(t_, row_, held_);
    const std::int64_t dq = row_.cast ? held_.take(t_ * row_.q_s) : 0;
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      const Hop& hop = hops_[i];
      receive(i);
      chunk_gradients(hop.launch, row_, held_);
      if (!hop.launch.keys.all) {
        held_.take(hop.exchange.received * row_.kv);
        held_.drop(hop.launch.keys.rows * row_.kv);
      }
      if (i > 0) {
        add_returned(i - 1);
      }
      returning_ = start_back(hop.exchange, ring_, row_, held_);
      held_.drop(hop.exchange.received * row_.kv);
    }
    held_.drop(dq);
    stages[1] = held_.end_stage();
    stages[2] = {stages[1].after, stages[1].after};
    add_returned(hops_.size() - 1);
    held_.drop(t_ * row_.kv_s);
    stages[3] = held_.end_stage();
    return stages;
  }

 private:
  void begin() {
    held_.take(t_ * row_.kv);
    send(0);
  }

  void send(std::size_t hop) {
    const Exchange& exchange = hops_[hop].exchange;
    held_.take((exchange.sent.copied() + exchange.share) * row_.kv);
    if (hop + 1 == hops_.size() && !exchange.sent.all) {
      held_.drop(t_ * row_.kv);
    }
  }

  void receive(std::size_t hop) {
    const Exchange& exchange = hops_[hop].exchange;
    held_.drop(exchange.sent.copied() * row_.kv);
    if (hop + 1 == hops_.size() && exchange.sent.all) {
      held_.drop(t_ * row_.kv);
    }
    collect(exchange, ring_, row_, held_);
    if (hop + 1 < hops_.size()) {
      send(hop + 1);
    }
  }

  void add_returned(std::size_t hop) {
    held_.drop(returning_);
    const std::int64_t rows = hops_[hop].exchange.sent.rows;
    take_back(rows, row_, held_);
    held_.drop(rows * row_.kv);
  }

  Ring ring_;
  Row row_;
  std::int64_t t_;
  std::vector<Hop> hops_;
  Held held_{};
  std::int64_t returning_ = 0;  // bytes sent
};

}  // namespace

StageList ring_bytes(const ZigzagPieces& pieces, const Ring& ring, const Row& row, bool backward) {
  RingSteps steps(pieces, ring, row);
  return backward ? steps.backward() : steps.forward();
}

}  // namespace nsp::sizes
