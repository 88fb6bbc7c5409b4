#include "nsp/exec/zigzag_rows.h"

#include "nsp/plan/exchanges.h"

namespace nsp {
namespace {

using Counts = std::vector<std::int64_t>;

// Consecutive rows.
struct Span {
  std::int64_t begin = 0;
  std::int64_t tokens = 0;

  std::int64_t end() const { return begin + tokens; }
};

void append(Counts& rows, const Span& span) {
  for (std::int64_t row = span.begin; row < span.end(); ++row) {
    rows.push_back(row);
  }
}

std::int64_t piece(const ZigzagPieces& pieces,
                   std::size_t sequence,
                   std::int32_t index,
                   bool upper) {
  const std::int32_t place = upper ? 2 * pieces.ring - 1 - index : index;
  return pieces.tokens[sequence][static_cast<std::size_t>(place)];
}

// Where the pieces of a sequence lie among rows of one index: all of them, or the lower ones only.
struct Held {
  Span lower;
  Span upper;
};

std::vector<Held> held_rows(const ZigzagPieces& pieces,
                            std::int32_t index,
                            bool with_upper,
                            std::int64_t begin = 0) {
  std::vector<Held> rows;
  for (std::size_t sequence = 0; sequence < pieces.tokens.size(); ++sequence) {
    Held held;
    held.lower = {begin, piece(pieces, sequence, index, false)};
    held.upper = {held.lower.end(), with_upper ? piece(pieces, sequence, index, true) : 0};
    begin = held.upper.end();
    rows.push_back(held);
  }
  return rows;
}

bool sends_upper(std::int32_t from, std::int32_t to) {
  return from == to || needs_upper(to, from);
}

void add_chunk(ZigzagChunks& chunks, const Span& queries, const std::vector<Span>& keys) {
  std::int64_t key_length = 0;
  for (const Span& span : keys) {
    key_length += span.tokens;
  }
  if (queries.tokens == 0 || key_length == 0) {
    return;
  }
  append(chunks.queries, queries);
  chunks.query_lengths.push_back(queries.tokens);
  for (const Span& span : keys) {
    append(chunks.keys, span);
  }
  chunks.key_lengths.push_back(key_length);
}

}  // namespace

std::int64_t zigzag_tokens(const ZigzagPieces& pieces, std::int32_t index) {
  const std::vector<Held> rows = held_rows(pieces, index, true);
  return rows.empty() ? 0 : rows.back().upper.end();
}

Counts own_lengths(const ZigzagPieces& pieces, std::int32_t index) {
  Counts lengths;
  for (const Held& held : held_rows(pieces, index, true)) {
    if (held.lower.tokens + held.upper.tokens > 0) {
      lengths.push_back(held.lower.tokens + held.upper.tokens);
    }
  }
  return lengths;
}

Counts sent_rows(const ZigzagPieces& pieces, std::int32_t from, std::int32_t to) {
  Counts rows;
  for (const Held& held : held_rows(pieces, from, true)) {
    append(rows, held.lower);
    if (sends_upper(from, to)) {
      append(rows, held.upper);
    }
  }
  return rows;
}

ZigzagChunks ring_chunks(const ZigzagPieces& pieces, std::int32_t index, std::int32_t source) {
  const bool above = sends_upper(source, index);
  const std::vector<Held> own = held_rows(pieces, index, true);
  const std::vector<Held> received = held_rows(pieces, source, above);
  ZigzagChunks chunks;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Span both = {own[i].lower.begin, own[i].lower.tokens + own[i].upper.tokens};
    add_chunk(chunks, above ? own[i].upper : both, {received[i].lower, received[i].upper});
  }
  return chunks;
}

ZigzagChunks gather_chunks(const ZigzagPieces& pieces, std::int32_t index, bool own_piece) {
  std::vector<std::vector<Held>> received;  // by source
  std::int64_t begin = 0;
  for (std::int32_t source = 0; source < pieces.ring; ++source) {
    received.push_back(held_rows(pieces, source, sends_upper(source, index), begin));
    begin = received.back().empty() ? begin : received.back().back().upper.end();
  }
  const std::vector<Held> own = held_rows(pieces, index, true);
  ZigzagChunks chunks;
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::vector<Span> keys;  // by position
    for (const std::vector<Held>& source : received) {
      keys.push_back(source[i].lower);
    }
    for (std::int32_t source = pieces.ring - 1; source >= 0; --source) {
      keys.push_back(received[static_cast<std::size_t>(source)][i].upper);
    }
    const auto last = [&](std::int32_t place) {
      return std::vector<Span>(keys.begin(), keys.begin() + place + (own_piece ? 1 : 0));
    };
    add_chunk(chunks, own[i].lower, last(index));
    add_chunk(chunks, own[i].upper, last(2 * pieces.ring - 1 - index));
  }
  return chunks;
}

}  // namespace nsp
