// Follows gather.cpp. Letters: t rows of this rank.
#include "nsp/exec/zigzag_sizes.h"

namespace nsp::sizes {
namespace {

class GatherSteps {
 public:
  GatherSteps(const ZigzagPieces& pieces, const Ring& ring, const Row& row)
      : ring_(ring), row_(row), t_(zigzag_tokens(pieces, ring.index)) {
    std::vector<std::int64_t> sent;
    for (std::int32_t other = 0; other < ring.size; ++other) {
      const std::vector<std::int64_t> to = sent_rows(pieces, ring.index, other);
      const std::int64_t received = std::ssize(sent_rows(pieces, other, ring.index));
      const std::int64_t returned = own_share(std::ssize(to), ring);
      const std::int64_t begin = ring.share_begin(std::ssize(to), ring.copy);
      sent.insert(sent.end(), to.begin() + begin, to.begin() + begin + returned);
      exchange_.share += own_share(received, ring);
      exchange_.received += received;
      longest_return_ = std::max(longest_return_, returned);
    }
    exchange_.sent = {sent, t_};
    all_ = gather_chunks(pieces, ring.index, true);
    before_ = gather_chunks(pieces, ring.index, false);
  }

  StageList forward() {
    StageList stages;
    begin();
    stages[0] = held_.end_stage();
    receive();
    const std::int64_t keys = held_.take(keys_of(all_).copied() * row_.kv);
    held_.drop(keys + exchange_.received * row_.kv);
    stages[1] = held_.end_stage();
    return stages;
  }

  StageList backward() {
    StageList stages;
    begin();
    stages[0] = held_.end_stage();
    own_gradients(t_, row_, held_);
    const std::int64_t dq = row_.cast ? held_.take(t_ * row_.q_s) : 0;
    receive();
    const Launch launch{{before_.queries, t_}, keys_of(before_)};
    chunk_gradients(launch, row_, held_);
    held_.drop(exchange_.received * row_.kv);
    add_up(launch.keys.rows);
    held_.drop(dq);
    stages[1] = held_.end_stage();
    const std::int64_t returning = start_back(exchange_, ring_, row_, held_);
    stages[2] = held_.end_stage();
    held_.drop(returning);
    take_back(longest_return_, row_, held_);
    held_.drop(exchange_.sent.rows * row_.kv + t_ * row_.kv_s);
    stages[3] = held_.end_stage();
    return stages;
  }

 private:
  void begin() {
    held_.take(t_ * row_.kv);
    held_.take((exchange_.sent.copied() + exchange_.share) * row_.kv);
    if (!exchange_.sent.all) {
      held_.drop(t_ * row_.kv);
    }
  }

  void receive() {
    held_.drop(exchange_.sent.rows * row_.kv);
    collect(exchange_, ring_, row_, held_);
  }

  // Of the launch's keys to those of the received rows.
  void add_up(std::int64_t keys) {
    std::int64_t sums = held_.take(exchange_.received * row_.kv_s);
    if (row_.cast) {
      held_.drop(held_.take(keys * row_.kv_s));
      held_.take(exchange_.received * row_.kv);
      held_.drop(sums);
    }
    held_.drop(keys * row_.kv);
  }

  Selected keys_of(const ZigzagChunks& chunks) const {
    Selected keys(chunks.keys, exchange_.received);
    keys.all = keys.all && ring_.copies == 1;  // shares lie in another order
    return keys;
  }

  Ring ring_;
  Row row_;
  std::int64_t t_;
  Exchange exchange_{{{}, 0}};
  std::int64_t longest_return_ = 0;
  ZigzagChunks all_;
  ZigzagChunks before_;
  Held held_{};
};

}  // namespace

StageList gather_bytes(const ZigzagPieces& pieces,
                       const Ring& ring,
                       const Row& row,
                       bool backward) {
  GatherSteps steps(pieces, ring, row);
  return backward ? steps.backward() : steps.forward();
}

}  // namespace nsp::sizes
