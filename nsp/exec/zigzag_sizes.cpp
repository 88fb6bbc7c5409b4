// Letters: m rows of queries.
#include "nsp/exec/zigzag_sizes.h"

namespace nsp::sizes {

std::int64_t own_share(std::int64_t rows, const Ring& ring) {
  return ring.share(rows, ring.copy);
}

void collect(const Exchange& exchange, const Ring& ring, const Row& row, Held& held) {
  if (ring.copies > 1) {
    const std::int64_t sent = held.take(ring.copies * exchange.share * row.kv);
    held.take(exchange.received * row.kv);
    held.drop(sent + exchange.share * row.kv);
  }
}

std::int64_t start_back(const Exchange& exchange, const Ring& ring, const Row& row, Held& held) {
  std::int64_t sent = exchange.received * row.kv;
  if (ring.copies > 1) {
    const std::int64_t parts = held.take(ring.copies * exchange.share * row.kv);
    held.drop(sent);
    const std::int64_t sum = held.take(exchange.share * row.kv_s);
    sent = row.cast ? held.take(exchange.share * row.kv) : sum;
    held.drop(parts + (row.cast ? sum : 0));
  }
  held.take(exchange.sent.rows * row.kv);
  return sent;
}

void take_back(std::int64_t rows, const Row& row, Held& held) {
  if (row.cast) {
    held.drop(held.take(rows * row.kv_s));
  }
}

void attend_chunks(const Launch& launch, const Row& row, Held& held) {
  if (launch.empty()) {
    return;
  }
  const std::int64_t m = launch.queries.rows, copied = launch.queries.copied();
  std::int64_t part = held.take(m * row.q);
  held.drop(held.take(copied * row.q + launch.keys.copied() * row.kv));
  if (row.cast) {
    const std::int64_t sum = held.take(m * row.q_s);
    held.drop(std::exchange(part, sum));
  }
  held.drop(held.take(copied * (row.q_s + row.lse) + m * row.lse) + part);
}

void chunk_gradients(const Launch& launch, const Row& row, Held& held) {
  const std::int64_t keys = held.take(launch.keys.copied() * row.kv);
  held.take(launch.keys.rows * row.kv);
  if (!launch.empty()) {
    const std::int64_t m = launch.queries.rows, copied = launch.queries.copied();
    const std::int64_t operands = held.take((3 * copied + m) * row.q);
    held.drop(held.take(copied * row.lse));
    if (row.cast) {
      held.drop(held.take(m * row.q_s));
    }
    held.drop(operands);
  }
  held.drop(keys);
}

void own_gradients(std::int64_t t, const Row& row, Held& held) {
  held.take(t * row.kv);
  if (row.cast) {
    held.take(t * row.kv_s);
    held.drop(t * row.kv);
  }
}

}  // namespace nsp::sizes
