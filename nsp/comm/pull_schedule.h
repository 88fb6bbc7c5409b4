// Who waits for what when ranks pull rows out of each other's memory: the protocol as numbers, for
// one rank. Streams of a GPU carry it out, or threads of a test.
//
// Every rank stages what leaves it in an arena, and every other rank of its group has two counters
// in it that only grow:
//
//   source                                    receiver
//   wait taken >= last exchange of this place
//   stage the rows
//   write ready := n into the receiver  --->  wait ready >= n
//                                             pull the rows to their place
//   (a later exchange waits for it)     <---  write taken := n into the source
//
// n counts the exchanges of this pair in this direction that have rows. Both sides know the plan
// and issue the same exchanges in the same order, so they count alike, and a pair that meets again
// after other partners goes on where it was: nothing is agreed between plans.
//
// Where an exchange is staged follows from the exchanges before it and from Route::most_staged,
// which all ranks know: a receiver needs no address from its source. The arena is used as a ring.
//
// No rank waits for ever: an exchange waits only for its own `ready`, which needs the sources'
// staging, and that waits only for earlier exchanges.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "nsp/comm/route.h"

namespace nsp {

// A counter of a rank (in the world) and a value of it. Values may wrap; they are compared
// cyclically.
struct Signal {
  std::int32_t rank = 0;
  std::uint32_t value = 0;

  bool operator==(const Signal&) const = default;
};

struct Staging {
  std::int64_t offset = 0;      // bytes into the arena
  std::vector<Signal> taken{};  // wait for these before the rows are written
};

struct Pulling {
  // A block for this rank: wait for `ready`, pull from `offset` of the source's arena, write the
  // same value as `taken` there.
  struct Source {
    std::int32_t member = 0;
    Signal ready;
    std::int64_t offset = 0;
  };
  std::vector<Signal> ready{};    // write these at the receivers once the rows are staged
  std::vector<Source> sources{};  // in the order of members
};

// Not thread-safe. Every rank of a group calls stage, then pull, for every exchange, also with
// nothing to send.
class PullSchedule {
 public:
  // The group: ranks [first_rank, first_rank + size) of the world, `rank` among them. `capacity`:
  // bytes of every rank's arena.
  PullSchedule(std::int32_t first_rank,
               std::int32_t size,
               std::int32_t rank,
               std::int64_t capacity);

  // The next exchange is staged at the arena's beginning: so a pass whose exchanges fit into the
  // arena together never waits for its own. Every rank of a group calls it at the same point.
  void restart();

  // Throws Error when the exchange does not fit into the arena.
  Staging stage(const Route& route, std::int64_t row_bytes);
  Pulling pull(const Route& route, std::int64_t row_bytes);

  // Bytes of the arena that an exchange of most_staged rows takes.
  static std::int64_t bytes(std::int64_t rows, std::int64_t row_bytes);

 private:
  struct Pair {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };
  // A part of the arena and who pulls from it.
  struct Place {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<Signal> takers{};
  };

  Pair& pair(std::int32_t rank) { return pairs_[static_cast<std::size_t>(rank - first_rank_)]; }
  std::vector<Signal> clear(std::int64_t begin, std::int64_t end);

  std::int32_t first_rank_;
  std::int32_t rank_;
  std::int64_t capacity_;
  std::vector<Pair> pairs_;
  std::deque<Place> places_;
  std::int64_t next_ = 0;      // first free byte behind the latest exchange
  std::int64_t latest_ = 0;    // where that begins
  std::int64_t this_lap_ = 0;  // exchanges since the ring began anew
};

}  // namespace nsp
